import * as z from 'zod'
import { TrustedKeys } from './trusted-keys.ts'
import { ModuleSources } from './module-sources.ts'
import { OutboundAllowlist } from './allowlist.ts'
import { ReleaseSource } from './release-source.ts'

export const optionalInteger = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`)
    .optional()

export const integer = (fallback: number, min: number, max: number) =>
  optionalInteger(min, max).transform((value) => value ?? fallback)

const AuditCheckpointTarget = z
  .string()
  .max(1000)
  .refine(
    (target) => !target.includes('://') || /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[\w!.*'()/-]*)?$/.test(target),
    'must be s3://bucket/prefix or a folder',
  )

export const Config = z.object({
  PLAT_TABLE: z.string().min(1).default('platform'),
  PLAT_QUEUE_BATCHES: z.string().default(''),
  PLAT_QUEUE_EVENTS: z.string().default(''),
  PLAT_QUEUE_WEBHOOKS: z.string().default(''),
  PLAT_QUEUE_INSTALLS: z.string().default(''),
  PLAT_QUEUE_UPDATES: z.string().default(''),
  PLAT_QUEUE_MODULES: z.string().default(''),
  /** Prefix of the secrets with the platform's keys: `<prefix>/access-keys` and others. */
  PLAT_SECRET_KEYS_PREFIX: z.string().default('platform'),
  PLAT_SECRET_ADMIN_TOKEN: z.string().default('platform/initial-admin-token'),
  /** Secret with registry credentials as JSON: `{"registry.example.com": {"username": "…", "password": "…"}}`. */
  PLAT_SECRET_REGISTRIES: z.string().default('platform/registries'),
  /** The public URL of the API, for relays and users. */
  PLAT_API_URL: z.string().default('http://127.0.0.1:8080'),
  /** The command that prints the initial admin token, for messages. */
  PLAT_ADMIN_TOKEN_COMMAND: z.string().default('npm run -s admin-token'),
  /** `true`: the portal says that this is a demo and offers example scripts. Set by the runner. */
  PLAT_DEMO: z.enum(['true', 'false']).default('false'),
  /** Directory of built files such as the relay program. Empty: `dist` beside the function's code. */
  PLAT_ASSETS_DIR: z.string().default(''),
  /** Where relays open the control channel: an absolute `wss` URL, or a path of the platform. Empty: they poll. */
  PLAT_CHANNEL_URL: z.string().default(''),
  /** Address of the broker to which functions publish wake-ups. Empty: relays are not woken. */
  PLAT_CHANNEL_ENDPOINT: z.string().default(''),
  /** Prefix of topics and client ids, because all stages of an account share one broker. */
  PLAT_CHANNEL_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,40}$/, 'must be at most 40 letters, digits and hyphens')
    .default('platform'),
  PLAT_HEARTBEAT_INTERVAL_SECONDS: integer(30, 1, 3600),
  /** Interval of the heartbeats of a relay while its control channel is open. */
  PLAT_CHANNEL_HEARTBEAT_SECONDS: integer(300, 30, 3600),
  /** Interval of `schedule/sweep`, set by the runner. */
  PLAT_SWEEP_INTERVAL_SECONDS: integer(60, 1, 3600),
  /**
   * Start time of the one-machine platform in milliseconds, set by its runner. Earlier silence of clusters does not
   * count.
   */
  PLAT_STARTED_AT_MS: integer(0, 0, Number.MAX_SAFE_INTEGER),
  /** Interval of `schedule/write-check`, set by the runner. */
  PLAT_WRITE_CHECK_INTERVAL_SECONDS: integer(60, 10, 3600),
  PLAT_OUTBOX_RETRY_SECONDS: integer(30, 1, 3600),
  /** Private addresses that outbound calls, except webhooks, may reach: `host:port`, comma-separated. */
  PLAT_OUTBOUND_ALLOW: OutboundAllowlist.default(''),
  /** Private addresses that webhooks may reach. Separate, because tenants choose the addresses of webhooks. */
  PLAT_WEBHOOK_ALLOW: OutboundAllowlist.default(''),
  /**
   * SHA-256 of the secret with which a trusted CDN or proxy in front of the platform identifies itself, in hexadecimal.
   * Empty: there is none.
   */
  PLAT_FRONT_SECRET_SHA256: z
    .string()
    .regex(/^(?:[0-9a-f]{64})?$/, 'must be the SHA-256 of the secret as 64 hexadecimal digits')
    .default(''),
  /** `true`: requests that do not come through the trusted CDN or proxy are rejected with 404. */
  PLAT_FRONT_REQUIRED: z.enum(['true', 'false']).default('false'),
  /** Where signed checkpoints of audit trails are written: `s3://bucket/prefix` or a folder. Empty: nowhere. */
  PLAT_AUDIT_CHECKPOINT_TARGET: AuditCheckpointTarget.default(''),
  PLAT_FAILPOINT: z.string().default(''),
  /** Repositories of the module catalog, comma-separated; `<registry>/*` if the registry lists its repositories. */
  PLAT_MODULE_SOURCES: ModuleSources.default(''),
  /** Trusted public keys as JSON: `[{"name": "…", "pem": "…", "repositories": ["…"]}]`; see `TrustedKey`. */
  PLAT_MODULE_KEYS: TrustedKeys.prefault('[]'),
  /** Allows modules without a trusted signature; the audit entry then contains `not verified`. */
  PLAT_ALLOW_UNVERIFIED_MODULES: z.enum(['true', 'false']).default('false'),
  PLAT_MODULE_RUNTIME: z.enum(['hosted', 'lambda']).default('hosted'),
  /** Time until another worker takes over an operation whose worker has failed. */
  PLAT_OPERATION_LEASE_SECONDS: integer(60, 3, 3600),
  PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: integer(60, 1, 3600),
  /**
   * `seeded`: containers are unavailable, so only the platform's own modules may run. Set by the one-machine platform.
   */
  PLAT_MODULE_PROCESSES: z.enum(['any', 'seeded']).default('any'),
  PLAT_MODULE_HOST_URL: z.string().default(''),
  PLAT_MODULE_HOST_TOKEN: z.string().default(''),
  /** Lambda only: the repository for copies of module images. */
  PLAT_MODULE_REPOSITORY: z.string().default(''),
  /** `ecr`: the platform creates each repository and lets Lambda read it. */
  PLAT_MODULE_REGISTRY: z.enum(['ecr', 'plain']).default('plain'),
  PLAT_MODULE_ROLE: z.string().default(''),
  /** Lambda only: the log group of modules. Empty: one log group per function. */
  PLAT_MODULE_LOG_GROUP: z.string().default(''),
  PLAT_MODULE_PREFIX: z.string().default('platform-mod'),
  /** Private registries that images may come from: `host:port`, comma-separated. */
  PLAT_REGISTRY_ALLOW: OutboundAllowlist.default(''),
  /** Prefix of the secrets of identity providers: `<prefix>/<provider id>/<random digits>`. */
  PLAT_SECRET_IDENTITY_PREFIX: z.string().default('platform/identity'),
  /** Repository of platform releases as `registry/repository`. Empty disables updates. */
  PLAT_RELEASE_SOURCE: ReleaseSource.default(''),
  /** Has the form of `PLAT_MODULE_KEYS`. */
  PLAT_RELEASE_KEYS: TrustedKeys.prefault('[]'),
  PLAT_UPDATE_TARGET: z.enum(['local-supervisor', 'lambda-alias']).default('local-supervisor'),
  /** Bake time at each of the three traffic steps, which must fit into a worker's limit of 300 s. */
  PLAT_UPDATE_BAKE_SECONDS: integer(30, 1, 60),
  PLAT_UPDATE_SUPERVISOR_URL: z.string().default(''),
  PLAT_UPDATE_SUPERVISOR_TOKEN: z.string().default(''),
  PLAT_FUNCTION_PREFIX: z.string().default('platform'),
  PLAT_FUNCTION_ALIAS: z.string().default('live'),
  /** `emf` is CloudWatch's embedded metric format. */
  PLAT_METRICS: z.enum(['emf', 'off']).default('off'),
  AWS_LAMBDA_FUNCTION_NAME: z.string().min(1).default('local'),
  PLAT_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** For tests: if 1, responses that violate the contract fail with status 500. */
  PLAT_VALIDATE_RESPONSES: z.enum(['0', '1']).default('0'),
  /** Sessions end after this time, even if they are used. */
  PLAT_SESSION_MAX_DAYS: integer(30, 1, 365),
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: integer(5, 1, 1_000_000),
  PLAT_LIMIT_SIGN_IN_USER_PER_HOUR: integer(100, 1, 1_000_000),
  PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: integer(20, 1, 1_000_000),
  PLAT_LIMIT_SIGN_INS_PER_MINUTE: integer(30, 1, 1_000_000),
  /** Applies per process and client network, separately to each public endpoint of identity provider sign-ins. */
  PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: integer(60, 1, 1_000_000),
  PLAT_LIMIT_SETUP_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_REFRESH_PER_MINUTE: integer(30, 1, 1_000_000),
  PLAT_LIMIT_ENROLL_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_BATCH_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_API_PER_MINUTE: integer(600, 1, 1_000_000),
  PLAT_LIMIT_API_BURST: integer(100, 1, 1_000_000),
  /** Defaults for each organisation. A platform administrator can set other quotas. */
  PLAT_QUOTA_CLUSTERS: integer(50_000, 0, 100_000),
  PLAT_QUOTA_USERS: integer(10_000, 0, 100_000),
  PLAT_QUOTA_WEBHOOKS: integer(50, 0, 50),
  PLAT_QUOTA_ACTIVE_JOBS: integer(100_000, 0, 10_000_000),
})

export type Config = z.infer<typeof Config>

/** Empty values count as unset. The error lists all invalid settings. */
export function parseConfig(environment: Record<string, string | undefined>): Config {
  const values = Object.entries(environment).filter(([, value]) => value !== '')
  const parsed = Config.safeParse(Object.fromEntries(values))
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`Invalid settings in the environment:\n  ${problems.join('\n  ')}`)
}
