/**
 * Direct writes: tasks write into a table's own directories, unseen; one commit record decides; what it says is then done, by
 * whoever is there.
 */
package io.millstream.write;
