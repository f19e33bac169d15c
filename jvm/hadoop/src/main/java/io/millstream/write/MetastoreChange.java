package io.millstream.write;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;

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

  /**
   * A change.
   *
   * @param database of the table
   * @param table its name
   * @param partitions to be added or changed
   * @param droppedPartitions by name: what they held is overwritten, and nothing has come into their place
   * @param tableParameters the table's own that are to be set
   * @param removedParameters which are no longer true, neither of the table nor of these partitions, and are to be removed
   */
  public MetastoreChange(
      String database,
      String table,
      List<Partition> partitions,
      List<String> droppedPartitions,
      Map<String, String> tableParameters,
      Set<String> removedParameters) {
    this.database = database;
    this.table = table;
    this.partitions = List.copyOf(partitions);
    this.droppedPartitions = List.copyOf(droppedPartitions);
    this.tableParameters = Map.copyOf(tableParameters);
    this.removedParameters = Set.copyOf(removedParameters);
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

  /** Parameters that are no longer true, neither of the table nor of these partitions, and are to be removed. */
  public Set<String> removedParameters() {
    return removedParameters;
  }
}
