// sc.textFile(directory).filter(_.contains("BALTIMORE")).count() in spark-shell: the lines stay in the JVM, as they
// would not in PySpark. Run by bench/spark-read; the directory comes in MILLSTREAM_BENCH_INPUT, how often the job is
// done before in MILLSTREAM_BENCH_WARM_UPS; what it cost goes out as JSON.
{
  val directory = sys.env("MILLSTREAM_BENCH_INPUT")
  val process = java.lang.management.ManagementFactory.getOperatingSystemMXBean
    .asInstanceOf[com.sun.management.OperatingSystemMXBean]
  def job() = sc.textFile(directory).filter(_.contains("BALTIMORE")).count()
  for (_ <- 1 to sys.env("MILLSTREAM_BENCH_WARM_UPS").toInt) job()
  val (start, cpuBefore) = (System.nanoTime, process.getProcessCpuTime)
  val rows = job()
  val (wall, cpu) = ((System.nanoTime - start) / 1e9, (process.getProcessCpuTime - cpuBefore) / 1e9)
  println(s"""{"wall_s": $wall, "cpu_s": $cpu, "heap_mb": 0, "rows": $rows}""")
}
sys.exit(0)
