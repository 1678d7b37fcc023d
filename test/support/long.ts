/**
 * Whether all is tried that can be, as `PLAT_TEST_LONG=1` asks for. Otherwise every kind of failure is struck once, and what
 * repeats it from another side is left to the tests of the code itself.
 */
export const isLong = process.env['PLAT_TEST_LONG'] === '1'

/** How often what is left to chance is tried. */
export const rounds = (few: number, many: number): number => (isLong ? many : few)

/** Of the places where work can be cut off one after the other: each one, or every fourth. */
export const stride = isLong ? 1 : 4

/** Of a table whose rows show the same kind of thing: all, or every third. */
export const sampled = <Each>(rows: readonly Each[], every = 3): readonly Each[] =>
  rows.filter((_, index) => isLong || index % every === 0)
