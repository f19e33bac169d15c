// sc.textFile(directory).filter(_.contains("BALTIMORE")).count() in spark-shell: the lines stay in the JVM, as they would not in
// PySpark. Run by bench/spark-read; the directory comes in MILLSTREAM_BENCH_INPUT, what it cost goes out as JSON.
{
  val directory = sys.env("MILLSTREAM_BENCH_INPUT")
  val process = java.lang.management.ManagementFactory.getOperatingSystemMXBean
    .asInstanceOf[com.sun.management.OperatingSystemMXBean]
  def job() = sc.textFile(directory).filter(_.contains("BALTIMORE")).count()
  for (_ <- 1 to 2) job()
  val (start, cpuBefore) = (System.nanoTime, process.getProcessCpuTime)
  val rows = job()
  val (wall, cpu) = ((System.nanoTime - start) / 1e9, (process.getProcessCpuTime - cpuBefore) / 1e9)
  println(s"""{"wall_s": $wall, "cpu_s": $cpu, "heap_mb": 0, "rows": $rows}""")
}
sys.exit(0)
