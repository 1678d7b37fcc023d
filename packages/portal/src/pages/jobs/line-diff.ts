type Line = { kind: 'same' | 'removed' | 'added'; text: string }

/** One line of a diff, or a number of equal lines that are not shown. `index` is the position in the diff. */
export type DiffRow = (Line | { kind: 'skipped'; count: number }) & { index: number }

// Above this product of line counts, the differing middle is shown as replaced, because comparing it takes too long.
const maxCells = 4_000_000
const contextLineCount = 3

/** Returns the lines in which two texts differ, with up to three equal lines around each change. */
export function diffLines(before: string, after: string): DiffRow[] {
  const [left, right] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < Math.min(left.length, right.length) && left[start] === right[start]) start++
  let end = 0
  const maxCommonLines = Math.min(left.length, right.length) - start
  while (end < maxCommonLines && left.at(-1 - end) === right.at(-1 - end)) end++
  const middle = compareLines(left.slice(start, left.length - end), right.slice(start, right.length - end))
  return withoutEqual([
    ...left.slice(0, start).map(sameLine),
    ...middle,
    ...left.slice(left.length - end).map(sameLine),
  ])
}

const linesOf = (text: string): string[] => {
  const lines = text.split('\n')
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

const sameLine = (text: string): Line => ({ kind: 'same', text })
const removedLine = (text: string): Line => ({ kind: 'removed', text })
const addedLine = (text: string): Line => ({ kind: 'added', text })

// Compares lines by their longest common subsequence.
function compareLines(left: readonly string[], right: readonly string[]): Line[] {
  if (left.length * right.length > maxCells) return [...left.map(removedLine), ...right.map(addedLine)]
  const width = right.length + 1
  const lengths = new Uint32Array((left.length + 1) * width)
  const lengthAt = (row: number, column: number): number => lengths[row * width + column] ?? 0
  for (let row = left.length - 1; row >= 0; row--)
    for (let column = right.length - 1; column >= 0; column--)
      lengths[row * width + column] =
        left[row] === right[column]
          ? lengthAt(row + 1, column + 1) + 1
          : Math.max(lengthAt(row + 1, column), lengthAt(row, column + 1))
  const lines: Line[] = []
  let [row, column] = [0, 0]
  while (row < left.length || column < right.length) {
    const [one, other] = [left[row], right[column]]
    if (one !== undefined && one === other) {
      lines.push(sameLine(one))
      row++
      column++
    } else if (one !== undefined && (other === undefined || lengthAt(row + 1, column) >= lengthAt(row, column + 1))) {
      lines.push(removedLine(one))
      row++
    } else {
      lines.push(addedLine(other ?? ''))
      column++
    }
  }
  return lines
}

function withoutEqual(lines: readonly Line[]): DiffRow[] {
  const isNear = new Uint8Array(lines.length)
  for (const [index, { kind }] of lines.entries())
    if (kind !== 'same') isNear.fill(1, Math.max(0, index - contextLineCount), index + contextLineCount + 1)
  const rows: DiffRow[] = []
  for (const [index, line] of lines.entries()) {
    const lastRow = rows.at(-1)
    if (isNear[index]) rows.push({ ...line, index })
    else if (lastRow?.kind === 'skipped') lastRow.count++
    else rows.push({ kind: 'skipped', count: 1, index })
  }
  return rows
}
