package io.millstream.spark.sync

import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit.{HOURS, MILLISECONDS}

import scala.jdk.CollectionConverters._

import org.junit.jupiter.api.Assertions.{assertEquals, assertFalse, assertTrue}
import org.junit.jupiter.api.Test

class TemporaryNamesTest {
  private val other = Maker("0123abcd", 4711)

  private def ended: Long = {
    val process = new ProcessBuilder("true").start()
    process.waitFor()
    process.pid
  }

  private def entry(name: String, hours: Long, kind: String = Kind.File) =
    Entry(s"d/$name", kind, mtime = Some(MILLISECONDS.toNanos(System.currentTimeMillis()) - HOURS.toNanos(hours)))

  @Test def namesAreOfTheirRun(): Unit = {
    val names = TemporaryNames(other, 17)
    val made = Seq(names.name(1, 2), names.name(1, 3), names.name(2, 2), names.working)
    assertEquals(4, made.distinct.length)
    assertTrue(made.forall(names.has))
    for (foreign <- Seq(
        TemporaryNames(other, 18),
        TemporaryNames(Maker("0123abcd", 4712), 17),
        TemporaryNames(Maker("0123abce", 4711), 17))) {
      assertFalse(made.exists(foreign.has), foreign.toString)
    }
    assertTrue(made.forall(TemporaryNames.makerOf(_).contains(other)))
    assertEquals(Some(names), TemporaryNames.of(names.toString))
  }

  @Test def numbersAreThoseThatPsyncReads(): Unit = {
    val largest = TemporaryNames(other, 4095).working
    assertEquals(s".psync-0123abcd-4711-${java.lang.Long.toUnsignedString(-1)}.tmp", largest)
  }

  @Test def namesAreThoseOfTheSharedVector(): Unit =
    Files.readAllLines(Path.of("../../testdata/temporary-names.tsv")).asScala.map(_.split('\t')).foreach {
      case Array("machine", bootId, namespace, expected) =>
        assertEquals(expected, Maker.machineOf(s"$bootId\n", namespace))
      case Array("temporary", name, machine, process) =>
        assertEquals(Some(Maker(machine, process.toLong)), TemporaryNames.makerOf(name), name)
      case Array("other", name) => assertEquals(None, TemporaryNames.makerOf(name), name)
    }

  @Test def processesOfThisMachineAreKnown(): Unit = {
    assertTrue(Maker.current.isRunning && !Maker.current.hasEnded)
    val gone = Maker.current.copy(process = ended)
    assertTrue(gone.hasEnded && !gone.isRunning)
    assertFalse(other.hasEnded || other.isRunning)
  }

  @Test def runsOfThisProcessEnd(): Unit = {
    val names = TemporaryNames.fresh()
    assertFalse(names.hasEnded)
    names.end()
    assertTrue(names.hasEnded && !TemporaryNames(other, names.run).hasEnded)
  }

  @Test def whatEndedMakersOrOthersDaysAgoHaveLeftIsAbandoned(): Unit = {
    val name = TemporaryNames(other, 1).name(1, 1)
    assertTrue(TemporaryNames.isAbandoned(entry(name, hours = 0), Set(TemporaryNames(other, 1))))
    assertFalse(TemporaryNames.isAbandoned(entry(name, hours = 0), Set(TemporaryNames(other, 2))))
    assertFalse(TemporaryNames.isAbandoned(entry(name, hours = 23), Set.empty))
    assertTrue(TemporaryNames.isAbandoned(entry(name, hours = 25), Set.empty))
    assertFalse(TemporaryNames.isAbandoned(entry(name, hours = 25, Kind.WorkingDirectory), Set.empty))
    assertTrue(TemporaryNames.isAbandoned(entry(name, hours = 8 * 24, Kind.WorkingDirectory), Set.empty))
    assertFalse(TemporaryNames.isAbandoned(entry(".psync-of-a-user", hours = 1000), Set.empty))
    assertFalse(TemporaryNames.isAbandoned(Entry(name, Kind.WorkingDirectory), Set.empty))
  }
}
