package io.millstream.write.metastore;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * A commit's change of the metastore, as data. It is part of the commit record and is applied again when a commit is
 * rolled forward, so every value is absolute ("totalSize is 10"), never relative ("10 more").
 */
public final class MetastoreChange implements Serializable {
    private static final long serialVersionUID = 1;

    /** A partition. */
    public static final class Partition implements Serializable {
        private static final long serialVersionUID = 1;

        private final String name;
        private final String location;
        private final Map<String, String> parameters;

        /**
         * A partition to add if it does not exist, and to change otherwise.
         *
         * @param name as Hive names it, {@code year=2026/month=1}, with values escaped
         * @param location the new location; null keeps the location of an existing partition and puts a new one below
         *     the table
         * @param parameters the parameters to set
         */
        public Partition(String name, String location, Map<String, String> parameters) {
            this.name = name;
            this.location = location;
            this.parameters = Map.copyOf(parameters);
        }

        /** As Hive names it, {@code year=2026/month=1}, with values escaped. */
        public String name() {
            return name;
        }

        /** The new location; null keeps the location of an existing partition and puts a new one below the table. */
        public String location() {
            return location;
        }

        /** The parameters to set. */
        public Map<String, String> parameters() {
            return parameters;
        }
    }

    private final String database;
    private final String table;
    private final List<Partition> partitions;
    private final List<String> droppedPartitions;
    private final Map<String, String> tableParameters;
    private final Set<String> removedParameters;
    private final boolean isSwap;
    private final String emptyDirectory;
    private final String tableLocation;
    private final String tableId;

    /**
     * A change.
     *
     * @param database of the table
     * @param table its name
     * @param partitions to be added or changed
     * @param droppedPartitions names of partitions to drop: their rows are overwritten, and they get no new ones
     * @param tableParameters parameters of the table itself to set
     * @param removedParameters parameters to remove from the table and these partitions, because they are no longer
     *     true; a name that ends with a dot is a prefix
     */
    public MetastoreChange(
            String database,
            String table,
            List<Partition> partitions,
            List<String> droppedPartitions,
            Map<String, String> tableParameters,
            Set<String> removedParameters) {
        this(
                database,
                table,
                partitions,
                droppedPartitions,
                tableParameters,
                removedParameters,
                false,
                null,
                null,
                null);
    }

    public MetastoreChange(
            String database,
            String table,
            List<Partition> partitions,
            List<String> droppedPartitions,
            Map<String, String> tableParameters,
            Set<String> removedParameters,
            boolean isSwap,
            String emptyDirectory,
            String tableLocation,
            String tableId) {
        this.database = database;
        this.table = table;
        this.partitions = List.copyOf(partitions);
        this.droppedPartitions = List.copyOf(droppedPartitions);
        this.tableParameters = Map.copyOf(tableParameters);
        this.removedParameters = Set.copyOf(removedParameters);
        this.isSwap = isSwap;
        this.emptyDirectory = emptyDirectory;
        this.tableLocation = tableLocation;
        this.tableId = tableId;
    }

    /**
     * The same change for partitions whose rows must change all at once: one request to the metastore sets the
     * locations of all of them, including those to be dropped. Partitions to be added are at an empty directory before
     * the request, and partitions to be dropped are there after it, so that neither have rows at that time.
     *
     * @param emptyDirectory the empty directory; null if no partition is added or dropped
     * @param locationOfTable the new location of the table itself; null keeps its location
     * @return the change
     */
    public MetastoreChange swap(String emptyDirectory, String locationOfTable) {
        return new MetastoreChange(
                database,
                table,
                partitions,
                droppedPartitions,
                tableParameters,
                removedParameters,
                true,
                emptyDirectory,
                locationOfTable,
                tableId);
    }

    /**
     * The same change for one specific table, not for any table that later has its name.
     *
     * @param id the table's id in the catalog
     * @return the change
     */
    public MetastoreChange of(String id) {
        return new MetastoreChange(
                database,
                table,
                partitions,
                droppedPartitions,
                tableParameters,
                removedParameters,
                isSwap,
                emptyDirectory,
                tableLocation,
                id);
    }

    /**
     * The same change without some partitions.
     *
     * @param names of the partitions to leave out; an empty name is a table without partitions, which then stays
     *     unchanged
     * @return the change
     */
    public MetastoreChange without(Set<String> names) {
        boolean isOfTable = !names.contains("");
        return new MetastoreChange(
                database,
                table,
                partitions.stream()
                        .filter(partition -> !names.contains(partition.name()))
                        .toList(),
                droppedPartitions.stream().filter(name -> !names.contains(name)).toList(),
                isOfTable ? tableParameters : Map.of(),
                removedParameters,
                isSwap,
                emptyDirectory,
                isOfTable ? tableLocation : null,
                tableId);
    }

    /**
     * A change of the same table that only drops partitions.
     *
     * @param names of these partitions
     * @return the change
     */
    public MetastoreChange dropping(List<String> names) {
        return new MetastoreChange(database, table, List.of(), names, Map.of(), Set.of(), false, null, null, tableId);
    }

    /**
     * The same change for a table that has been renamed since.
     *
     * @param newDatabase of the table
     * @param newTable its name
     * @return the change
     */
    public MetastoreChange named(String newDatabase, String newTable) {
        return new MetastoreChange(
                newDatabase,
                newTable,
                partitions,
                droppedPartitions,
                tableParameters,
                removedParameters,
                isSwap,
                emptyDirectory,
                tableLocation,
                tableId);
    }

    /**
     * The same change for a table whose directory has moved since.
     *
     * @param from the table's directory when the change was planned
     * @param to its directory now
     * @return the change
     */
    public MetastoreChange moved(String from, String to) {
        UnaryOperator<String> move =
                location -> location != null && (location.equals(from) || location.startsWith(from + "/"))
                        ? to + location.substring(from.length())
                        : location;
        return new MetastoreChange(
                database,
                table,
                partitions.stream()
                        .map(partition -> new Partition(
                                partition.name(), move.apply(partition.location()), partition.parameters()))
                        .toList(),
                droppedPartitions,
                tableParameters,
                removedParameters,
                isSwap,
                move.apply(emptyDirectory),
                move.apply(tableLocation),
                tableId);
    }

    /** The database of the table. */
    public String database() {
        return database;
    }

    /** The table's name. */
    public String table() {
        return table;
    }

    /** Partitions to add or change. */
    public List<Partition> partitions() {
        return partitions;
    }

    /** Names of partitions to drop if they exist. */
    public List<String> droppedPartitions() {
        return droppedPartitions;
    }

    /** Parameters of the table itself to set. */
    public Map<String, String> tableParameters() {
        return tableParameters;
    }

    /** Whether the new files stay invisible to readers until the metastore changes. */
    public boolean isSwap() {
        return isSwap;
    }

    /** The empty directory of partitions to be added or dropped, while they have no rows; null if there are none. */
    public String emptyDirectory() {
        return emptyDirectory;
    }

    /** The table's new location; null keeps its location. */
    public String tableLocation() {
        return tableLocation;
    }

    /** The table's id in the catalog, which distinguishes it from others of its name; null if unknown. */
    public String tableId() {
        return tableId;
    }

    /** Names and prefixes of parameters that are no longer true. */
    public Set<String> removedParameters() {
        return removedParameters;
    }

    /** Whether a parameter must be removed from the table and these partitions, because it is no longer true. */
    public boolean removes(String parameter) {
        return removedParameters.contains(parameter)
                || removedParameters.stream()
                        .anyMatch(removed -> removed.endsWith(".") && parameter.startsWith(removed));
    }
}
