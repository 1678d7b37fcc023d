/** What an operator may set for a deployment: what stands in the environment of `npm run deploy` goes to the functions. */
const names = [
  'PLAT_OUTBOUND_ALLOW',
  'PLAT_REGISTRY_ALLOW',
  'PLAT_MODULE_SOURCES',
  'PLAT_MODULE_KEYS',
  'PLAT_ALLOW_UNVERIFIED_MODULES',
  'PLAT_RELEASE_SOURCE',
  'PLAT_RELEASE_KEYS',
  'PLAT_UPDATE_BAKE_SECONDS',
  'PLAT_HEARTBEAT_INTERVAL_SECONDS',
  'PLAT_ANNOUNCE_AGAIN_SECONDS',
  'PLAT_OPERATION_LEASE_SECONDS',
  'PLAT_LOG_LEVEL',
  'PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE',
  'PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE',
  'PLAT_LIMIT_SETUP_PER_MINUTE',
  'PLAT_LIMIT_REFRESH_PER_MINUTE',
  'PLAT_LIMIT_ENROLL_PER_MINUTE',
  'PLAT_LIMIT_BATCH_PER_MINUTE',
  'PLAT_LIMIT_API_PER_MINUTE',
  'PLAT_LIMIT_API_BURST',
] as const

export const settings: Record<string, string> = Object.fromEntries(
  names.flatMap((name) => {
    const value = process.env[name]
    return value ? [[name, value] as const] : []
  }),
)
