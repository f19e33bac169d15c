//! Layouts with several names per line: columns (down or across) and comma-separated.

use super::block::Block;

/// Columns between two names.
const GAP: usize = 2;
/// The narrowest column: a name of one character and the gap.
const MIN_COLUMN: usize = 3;

/// The direction in which columns are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Downwards.
    Down,
    /// Across.
    Across,
}

/// Rows and columns that fit a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of rows.
    pub rows: usize,
    /// Width of each column, gap included.
    pub columns: Vec<usize>,
    direction: Direction,
}

impl Grid {
    /// The grid with the most columns in which items of these widths stay within `line_width`.
    pub fn fit(widths: &[usize], line_width: usize, direction: Direction) -> Grid {
        let most = line_width.div_ceil(MIN_COLUMN).clamp(1, widths.len().max(1));
        let candidates = (1..=most).rev();
        let fitting = candidates.map(|columns| Grid::with_columns(widths, columns, line_width, direction));
        let mut fitting = fitting.flatten();
        fitting.next().unwrap_or_else(|| {
            let widest = widths.iter().copied().max().unwrap_or(0).max(MIN_COLUMN);
            Grid { rows: widths.len(), columns: vec![widest], direction }
        })
    }

    fn with_columns(widths: &[usize], count: usize, line_width: usize, direction: Direction) -> Option<Grid> {
        let rows = widths.len().div_ceil(count);
        let mut columns = vec![MIN_COLUMN; count];
        let mut total = count * MIN_COLUMN;
        for (i, width) in widths.iter().enumerate() {
            let column = match direction {
                Direction::Down => i / rows,
                Direction::Across => i % count,
            };
            // The width of a name that has none is one less than 0, as in GNU ls.
            let needed = width.wrapping_add(if column == count - 1 { 0 } else { GAP });
            if needed > columns[column] {
                total = total.wrapping_add(needed - columns[column]);
                columns[column] = needed;
                // As in GNU ls, a column of minimum width may extend past the last column of the line.
                if total >= line_width {
                    return None;
                }
            }
        }
        Some(Grid { rows, columns, direction })
    }

    /// The item at a row and column, if there is one.
    pub fn item(&self, row: usize, column: usize, count: usize) -> Option<usize> {
        let index = match self.direction {
            Direction::Down => column * self.rows + row,
            Direction::Across => row * self.columns.len() + column,
        };
        (index < count).then_some(index)
    }

    /// Number of rows that `count` items take.
    pub fn row_count(&self, count: usize) -> usize {
        match self.direction {
            Direction::Down => self.rows,
            Direction::Across => count.div_ceil(self.columns.len()),
        }
    }
}

/// Advances from one column to a later one, with tabs where they help.
pub fn indent(mut from: usize, to: usize, tab_width: usize, block: &mut Block) {
    while from < to {
        if tab_width != 0 && to / tab_width > (from + 1) / tab_width {
            block.text.push(b'\t');
            from += tab_width - from % tab_width;
        } else {
            block.text.push(b' ');
            from += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_columns_as_fit() {
        for (widths, line, direction, rows, columns) in [
            (vec![3, 1, 8, 2, 2, 2], 20, Direction::Down, 2, vec![5, 10, 3]),
            (vec![1, 1, 1], 80, Direction::Across, 1, vec![3, 3, 3]),
            (vec![30, 30], 20, Direction::Down, 2, vec![30]),
            (vec![], 80, Direction::Down, 0, vec![3]),
            (vec![1, 1], 4, Direction::Across, 1, vec![3, 3]),
            (vec![1, 3], 4, Direction::Across, 1, vec![3, 3]),
            (vec![2, 1], 7, Direction::Across, 2, vec![3]),
            (vec![2, 1], 8, Direction::Across, 1, vec![4, 3]),
        ] {
            let grid = Grid::fit(&widths, line, direction);
            assert_eq!((grid.rows, &grid.columns), (rows, &columns), "{widths:?}");
        }
    }

    #[test]
    fn tabs_are_used_where_they_save_space() {
        for (from, to, tab, expected) in
            [(6, 8, 8, "\t"), (7, 8, 8, " "), (2, 17, 8, "\t\t "), (0, 3, 8, "   "), (6, 8, 0, "  ")]
        {
            let mut block = Block::default();
            indent(from, to, tab, &mut block);
            assert_eq!(block.text, expected.as_bytes(), "{from} {to} {tab}");
        }
    }
}
