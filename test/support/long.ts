/** Whether `PLAT_TEST_LONG=1` requests exhaustive tests. Other runs skip slow tests and test samples. */
export const isLong = process.env['PLAT_TEST_LONG'] === '1'

export const rounds = (few: number, many: number): number => (isLong ? many : few)

export const stride = isLong ? 1 : 4

export const sampled = <Each>(rows: readonly Each[], interval = 3): readonly Each[] =>
  rows.filter((_, index) => isLong || index % interval === 0)

/** Short tests start one function thread instead of the default of two: each thread loads all functions. */
export const shortTestSettings = process.env['VITEST'] !== undefined && !isLong ? { PLAT_FUNCTION_THREADS: '1' } : {}
