// sc.textFile(directory).filter(_.contains("BALTIMORE")).count() in spark-shell: unlike in PySpark, the lines stay in
// the JVM. Run by bench/spark-read; MILLSTREAM_BENCH_INPUT is the directory, MILLSTREAM_BENCH_WARM_UPS the number of
// runs before the measured one; prints the cost as JSON.
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
