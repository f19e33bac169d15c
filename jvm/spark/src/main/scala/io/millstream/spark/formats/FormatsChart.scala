package io.millstream.spark.formats

import java.awt.{Color, Font, Graphics2D, RenderingHints}
import java.awt.image.BufferedImage
import java.io.{ByteArrayOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import javax.imageio.ImageIO

import io.millstream.spark.console.Failures

/**
 * A bar, or a line of text.
 *
 * @param caption the text after the bar
 * @param isOurs whether it is Millstream's
 */
private[spark] final case class FormatsBar(label: String, length: Option[Double], caption: String, isOurs: Boolean)

/** Bars on one scale. */
private[spark] final case class FormatsBars(title: String, bars: Seq[FormatsBar]) {
  def longest: Double = bars.flatMap(_.length).maxOption.filter(_ > 0).getOrElse(1.0)
}

/** Groups of bars: on a terminal, and as a picture. */
private[spark] final case class FormatsChart(title: String, groups: Seq[FormatsBars]) {
  import FormatsChart._

  def text(ascii: Boolean): String = groups.map { group =>
    val width = group.bars.map(_.label.length).maxOption.getOrElse(0)
    def drawn(bar: FormatsBar) = bar.length.fold("")(length => s"${blocks(length / group.longest, ascii)} ")
    val lines = group.bars.map(bar => s"  ${bar.label.padTo(width, ' ')}  ${drawn(bar)}${bar.caption}")
    (group.title +: lines).mkString("\n")
  }.mkString("\n\n")

  /** Writes the picture in the format of the file's extension. */
  def write(file: Path): Unit = {
    val picture = if (file.toString.endsWith(".svg")) svg.getBytes(UTF_8) else png
    try Files.write(file, picture)
    catch {
      case e: IOException => throw new FormatsFailure(
          s"$file: cannot write the picture: ${Failures.oneLine(e)}; choose another --picture")
    }
  }

  /** The description of the picture for all formats. */
  private def shapes: Seq[Shape] = {
    val heading = Letters(Margin, Margin + TitleSize, title, TitleSize, isBold = true)
    val (_, all) = groups.foldLeft((Margin + 2 * Line, Seq[Shape](heading))) { case ((top, shapes), group) =>
      val bars = group.bars.zipWithIndex.flatMap { case (bar, i) => row(group, bar, top + (i + 1) * Line) }
      (
        top + (group.bars.length + 2) * Line,
        shapes ++ (Letters(Margin, top + TextSize, group.title, TextSize, isBold = true) +: bars))
    }
    all
  }

  private def row(group: FormatsBars, bar: FormatsBar, top: Int): Seq[Shape] = {
    val length = bar.length.fold(0)(length => math.max(1, (length / group.longest * BarWidth).toInt))
    Seq(
      Letters(Margin, top + TextSize, bar.label, TextSize, isBold = false),
      Rectangle(BarStart, top, length, BarHeight, if (bar.isOurs) OurColor else StockColor),
      Letters(BarStart + length + Gap, top + TextSize, bar.caption, TextSize, isBold = false))
  }

  private def height: Int = 2 * Margin + (1 + groups.map(_.bars.length + 2).sum) * Line

  private def svg: String = {
    val elements = shapes.map {
      case Rectangle(x, y, width, height, color) =>
        f"""<rect x="$x" y="$y" width="$width" height="$height" fill="#${color.getRGB & 0xffffff}%06x"/>"""
      case Letters(x, y, text, size, isBold) =>
        val weight = if (isBold) "bold" else "normal"
        s"""<text x="$x" y="$y" font-size="$size" font-weight="$weight">${escaped(text)}</text>"""
    }
    s"""<svg xmlns="http://www.w3.org/2000/svg" width="$Width" height="$height" viewBox="0 0 $Width $height" font-family="$FontName">
       |<rect width="$Width" height="$height" fill="#ffffff"/>
       |${elements.mkString("\n")}
       |</svg>
       |""".stripMargin
  }

  private def png: Array[Byte] = {
    System.setProperty("java.awt.headless", "true")
    val image = new BufferedImage(Width, height, BufferedImage.TYPE_INT_RGB)
    val graphics = image.createGraphics()
    graphics.setRenderingHint(RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON)
    graphics.setColor(Color.WHITE)
    graphics.fillRect(0, 0, Width, height)
    shapes.foreach(paint(graphics, _))
    graphics.dispose()
    val bytes = new ByteArrayOutputStream
    ImageIO.write(image, "png", bytes)
    bytes.toByteArray
  }

  private def paint(graphics: Graphics2D, shape: Shape): Unit = shape match {
    case Rectangle(x, y, width, height, color) =>
      graphics.setColor(color)
      graphics.fillRect(x, y, width, height)
    case Letters(x, y, text, size, isBold) =>
      graphics.setColor(Color.BLACK)
      graphics.setFont(new Font(Font.SANS_SERIF, if (isBold) Font.BOLD else Font.PLAIN, size))
      graphics.drawString(text, x, y)
  }
}

private[spark] object FormatsChart {
  private val Width = 1000
  private val BarWidth = 560
  private val BarStart = 170
  private val BarHeight = 16
  private val Margin = 24
  private val Gap = 6
  private val Line = 24
  private val TextSize = 14
  private val TitleSize = 18
  private val FontName = "sans-serif"
  private val StockColor = new Color(0x9a9a9a)
  private val OurColor = new Color(0x2f6db5)

  /** Length of the longest bar on a terminal, in characters. */
  private val Columns = 40

  /** A full block, and its parts in eighths. */
  private val Full = "\u2588"
  private val Eighths = Seq("", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589")

  private sealed trait Shape
  private final case class Rectangle(x: Int, y: Int, width: Int, height: Int, color: Color) extends Shape
  private final case class Letters(x: Int, y: Int, text: String, size: Int, isBold: Boolean) extends Shape

  /** A bar of a fraction of the columns, at least as long as the smallest visible one. */
  def blocks(part: Double, ascii: Boolean): String =
    if (ascii) "#" * math.max(1, math.round(part * Columns).toInt)
    else {
      val eighths = math.max(1, math.round(part * Columns * Eighths.length).toInt)
      Full * (eighths / Eighths.length) + Eighths(eighths % Eighths.length)
    }

  private def escaped(text: String): String = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

  /** Refuses a picture that this machine cannot draw, before anything is measured. */
  def require(file: Path): Unit =
    if (file.toString.endsWith(".png")) {
      try FormatsChart("test", Nil).png
      catch {
        // Java without its graphics libraries, or a machine without fonts.
        case e @ (_: LinkageError | _: RuntimeException) =>
          throw new FormatsFailure(
            s"$file: cannot draw a PNG, because this Java has no graphics or no fonts (${Failures.oneLine(e)}); write an .svg")
      }
    }
}
