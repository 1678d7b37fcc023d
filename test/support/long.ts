/**
 * Whether all is tried that can be, as `PLAT_TEST_LONG=1` asks for. Otherwise every kind of failure is struck once, and what
 * repeats it from another side is left to the tests of the code itself.
 */
export const isLong = process.env['PLAT_TEST_LONG'] === '1'
