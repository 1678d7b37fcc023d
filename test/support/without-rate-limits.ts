/**
 * Raises the rate limits, except those of failed sign-ins. Import this file before core: `await vi.hoisted(() =>
 * import(…))`.
 */

const limits = [
  'SIGN_INS_PER_MINUTE',
  'SIGN_IN_STEP_PER_MINUTE',
  'SETUP_PER_MINUTE',
  'REFRESH_PER_MINUTE',
  'ENROLL_PER_MINUTE',
  'BATCH_PER_MINUTE',
  'API_PER_MINUTE',
  'API_BURST',
]
for (const limit of limits) process.env[`PLAT_LIMIT_${limit}`] = '1000000'
