package io.millstream.write.metastore;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * What a commit changes in the metastore, as data: it is in the commit record, and is applied again when a commit is rolled forward.
 * So everything in it is absolute ("totalSize is 10"), never relative ("10 more").
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
     * A partition to add if it is not there, and to change otherwise.
     *
     * @param name as Hive names it, {@code year=2026/month=1}, with values escaped
     * @param location where it is to be; null leaves it where it is, and puts a new one below the table
     * @param parameters the ones that are to be set
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

    /** Where it is to be; null leaves it where it is, and puts a new one below the table. */
    public String location() {
      return location;
    }

    /** The parameters to be set. */
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
  private final String none;
  private final String tableLocation;
  private final String tableId;

  /**
   * A change.
   *
   * @param database of the table
   * @param table its name
   * @param partitions to be added or changed
   * @param droppedPartitions by name: what they held is overwritten, and nothing has come into their place
   * @param tableParameters the table's own that are to be set
   * @param removedParameters which are no longer true, neither of the table nor of these partitions, and are to be removed; one that
   *     ends with a dot stands for all that begin with it
   */
  public MetastoreChange(
      String database,
      String table,
      List<Partition> partitions,
      List<String> droppedPartitions,
      Map<String, String> tableParameters,
      Set<String> removedParameters) {
    this(database, table, partitions, droppedPartitions, tableParameters, removedParameters, false, null, null, null);
  }

  public MetastoreChange(
      String database,
      String table,
      List<Partition> partitions,
      List<String> droppedPartitions,
      Map<String, String> tableParameters,
      Set<String> removedParameters,
      boolean isSwap,
      String none,
      String tableLocation,
      String tableId) {
    this.database = database;
    this.table = table;
    this.partitions = List.copyOf(partitions);
    this.droppedPartitions = List.copyOf(droppedPartitions);
    this.tableParameters = Map.copyOf(tableParameters);
    this.removedParameters = Set.copyOf(removedParameters);
    this.isSwap = isSwap;
    this.none = none;
    this.tableLocation = tableLocation;
    this.tableId = tableId;
  }

  /**
   * The same change, for partitions all of whose rows change at once: one request to the metastore gives all of them, those to be
   * dropped too, their locations. So that those to be added or dropped have no rows before or after it, they are elsewhere then.
   *
   * @param emptyDirectory where they are; null if there are none of them
   * @param locationOfTable where the table itself is to be; null leaves it where it is
   * @return the change
   */
  public MetastoreChange swap(String emptyDirectory, String locationOfTable) {
    return new MetastoreChange(database, table, partitions, droppedPartitions, tableParameters, removedParameters, true, emptyDirectory,
        locationOfTable, tableId);
  }

  /**
   * The same change, for one table alone and not for whichever has its name later.
   *
   * @param id what the catalog tells this table by
   * @return the change
   */
  public MetastoreChange of(String id) {
    return new MetastoreChange(database, table, partitions, droppedPartitions, tableParameters, removedParameters, isSwap, none,
        tableLocation, id);
  }

  /**
   * The same change, but for some partitions: nothing happens to these.
   *
   * @param names of partitions
   * @return the change
   */
  public MetastoreChange without(Set<String> names) {
    return new MetastoreChange(database, table, partitions.stream().filter(partition -> !names.contains(partition.name())).toList(),
        droppedPartitions.stream().filter(name -> !names.contains(name)).toList(), tableParameters, removedParameters, isSwap, none,
        tableLocation, tableId);
  }

  /**
   * The same change, of a table that has been renamed since.
   *
   * @param newDatabase of the table
   * @param newTable its name
   * @return the change
   */
  public MetastoreChange named(String newDatabase, String newTable) {
    return new MetastoreChange(newDatabase, newTable, partitions, droppedPartitions, tableParameters, removedParameters, isSwap, none,
        tableLocation, tableId);
  }

  /**
   * The same change, of a table whose directory has moved since.
   *
   * @param from the table's directory when the change was made up
   * @param to its directory now
   * @return the change
   */
  public MetastoreChange moved(String from, String to) {
    UnaryOperator<String> move = location -> location != null && (location.equals(from) || location.startsWith(from + "/"))
        ? to + location.substring(from.length()) : location;
    return new MetastoreChange(database, table,
        partitions.stream().map(partition -> new Partition(partition.name(), move.apply(partition.location()), partition.parameters())).toList(),
        droppedPartitions, tableParameters, removedParameters, isSwap, move.apply(none), move.apply(tableLocation), tableId);
  }

  /** The database of the table. */
  public String database() {
    return database;
  }

  /** The table's name. */
  public String table() {
    return table;
  }

  /** Partitions to be added or changed. */
  public List<Partition> partitions() {
    return partitions;
  }

  /** Partitions to be dropped if they are there, by name. */
  public List<String> droppedPartitions() {
    return droppedPartitions;
  }

  /** Parameters of the table itself that are to be set. */
  public Map<String, String> tableParameters() {
    return tableParameters;
  }

  /** Whether readers see nothing of what is written before the metastore has changed. */
  public boolean isSwap() {
    return isSwap;
  }

  /** Where partitions are that are to be added or dropped, while they have no rows; null if there are none of them. */
  public String none() {
    return none;
  }

  /** Where the table is to be; null leaves it where it is. */
  public String tableLocation() {
    return tableLocation;
  }

  /** What the catalog tells the table by from others of its name; null if nobody has said. */
  public String tableId() {
    return tableId;
  }

  /** Parameters that are no longer true, as they were given. */
  public Set<String> removedParameters() {
    return removedParameters;
  }

  /** Whether a parameter is no longer true, neither of the table nor of these partitions, and is to be removed. */
  public boolean removes(String parameter) {
    return removedParameters.contains(parameter)
        || removedParameters.stream().anyMatch(removed -> removed.endsWith(".") && parameter.startsWith(removed));
  }
}
