package io.millstream.write.store;

import java.io.Serializable;

/**
 * A file that a commit deletes, as it was when the commit was decided; a later file of the same name is not deleted.
 */
public record OldFile(String directory, String name, long bytes, long modifiedMillis) implements Serializable {
    @Override
    public String toString() {
        return directory.isEmpty() ? name : directory + "/" + name;
    }
}
