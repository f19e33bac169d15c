import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * ClusterApplication LINES TABLE REPORT: reads and lists the directory LINES, before there is a session and in one, and
 * inserts its lines into a new table in the directory TABLE. REPORT gets a line for each result: {@code name=value}.
 */
public final class ClusterApplication {
  public static void main(String[] arguments) throws Exception {
    String lines = arguments[0];
    StringBuilder report = new StringBuilder();
    JavaSparkContext context = new JavaSparkContext();
    report.append("rdd=").append(context.textFile(lines).count()).append('\n');
    FileSystem local = FileSystem.getLocal(context.hadoopConfiguration());
    report.append("fileSystem=").append(local.getClass().getSimpleName()).append('\n');

    SparkSession spark = SparkSession.builder().getOrCreate();
    Dataset<Row> read = spark.read().text(lines).filter("value like '%7%'");
    report.append("rows=").append(read.count()).append('\n');
    String plan = read.queryExecution().executedPlan().toString();
    report.append("index=").append(plan.contains("CompactFileIndex")).append('\n');
    report.append("scan=").append(plan.contains("NativeTextScan")).append('\n');

    spark.sql("create table t (line string) using text location '" + arguments[1] + "'");
    String insert = "insert into t select value from text.`" + lines + "`";
    String explained = spark.sql("explain " + insert).first().getString(0);
    report.append("direct=").append(explained.contains("DirectInsert")).append('\n');
    spark.sql(insert);
    report.append("inserted=").append(spark.table("t").count()).append('\n');

    Path partial = Path.of(arguments[2] + ".partial");
    Files.writeString(partial, report);
    Files.move(partial, Path.of(arguments[2]), StandardCopyOption.ATOMIC_MOVE);
    spark.stop();
  }
}
