/** Whether `PLAT_TEST_LONG=1` requests exhaustive tests. Otherwise each kind of failure is tested once. */
export const isLong = process.env['PLAT_TEST_LONG'] === '1'

/** Number of repetitions of randomised tests. */
export const rounds = (few: number, many: number): number => (isLong ? many : few)

/** All of a list of kill points, or every fourth. */
export const stride = isLong ? 1 : 4

/** All rows of a table, or every third. */
export const sampled = <Each>(rows: readonly Each[], every = 3): readonly Each[] =>
  rows.filter((_, index) => isLong || index % every === 0)
