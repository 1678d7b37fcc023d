import * as z from 'zod'
import { TrustedKeys } from './trusted-keys.ts'
import { ModuleSources } from './module-sources.ts'
import { OutboundAllowlist } from './allowlist.ts'
import { ReleaseSource } from './release-source.ts'

/** A whole number in digits; undefined if unset. */
export const optionalInteger = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`)
    .optional()

/** A whole number in digits. */
export const integer = (fallback: number, min: number, max: number) =>
  optionalInteger(min, max).transform((value) => value ?? fallback)

/** Settings of the functions. The local runner and the deployment use the same names. */
export const Config = z.object({
  /** Name of the table. */
  PLAT_TABLE: z.string().min(1).default('platform'),
  /** URL of the queue of jobs to dispatch. */
  PLAT_QUEUE_JOBS: z.string().default(''),
  /** URLs of the queues of batches, outbox projections and webhook deliveries. */
  PLAT_QUEUE_BATCHES: z.string().default(''),
  PLAT_QUEUE_EVENTS: z.string().default(''),
  PLAT_QUEUE_WEBHOOKS: z.string().default(''),
  /** URLs of the queues of operations and module events. */
  PLAT_QUEUE_UPDATES: z.string().default(''),
  PLAT_QUEUE_MODULES: z.string().default(''),
  PLAT_SECRET_SIGNING_KEYS: z.string().default('platform/signing-keys'),
  PLAT_SECRET_ADMIN_TOKEN: z.string().default('platform/initial-admin-token'),
  /** Secret with registry credentials as JSON: `{"registry.example.com": {"username": "…", "password": "…"}}`. */
  PLAT_SECRET_REGISTRIES: z.string().default('platform/registries'),
  /** The public URL of the API, for relays and users. */
  PLAT_API_URL: z.string().default('http://127.0.0.1:8080'),
  /** The command that prints the initial admin token. */
  PLAT_ADMIN_TOKEN_COMMAND: z.string().default('npm run -s admin-token'),
  /** Directory of built files such as the relay program; empty: `dist` beside the function's code. */
  PLAT_ASSETS_DIR: z.string().default(''),
  /** URL that notifies the gateway of new work for long-polling relays; empty without long polls. */
  PLAT_RELAY_NOTIFY_URL: z.string().default(''),
  PLAT_HEARTBEAT_INTERVAL_SECONDS: integer(30, 1, 3600),
  /** Delay before unprocessed work is enqueued again. */
  PLAT_OUTBOX_RETRY_SECONDS: integer(30, 1, 3600),
  /** Private addresses that outbound calls may reach: `host:port`, comma-separated. */
  PLAT_OUTBOUND_ALLOW: OutboundAllowlist.default(''),
  /** Kills, hangs or breaks the process at a failpoint. For tests. */
  PLAT_FAILPOINT: z.string().default(''),
  /** Repositories of the module catalog, comma-separated; `<registry>/*` if the registry lists its repositories. */
  PLAT_MODULE_SOURCES: ModuleSources.default(''),
  /** Trusted public keys as JSON: `[{"name": "…", "pem": "…", "repositories": ["…"]}]`. */
  PLAT_MODULE_KEYS: TrustedKeys.prefault('[]'),
  /** Whether modules without a trusted signature may be installed, with an audit entry. */
  PLAT_ALLOW_UNVERIFIED_MODULES: z.enum(['true', 'false']).default('false'),
  /** The module runtime: the local host or Lambda. */
  PLAT_MODULE_RUNTIME: z.enum(['hosted', 'lambda']).default('hosted'),
  /** Lease time of an operation before another worker takes over. */
  PLAT_OPERATION_LEASE_SECONDS: integer(60, 3, 3600),
  /** Interval of module health checks and background jobs. */
  PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: integer(60, 1, 3600),
  PLAT_MODULE_HOST_URL: z.string().default(''),
  PLAT_MODULE_HOST_TOKEN: z.string().default(''),
  /** Lambda only: repository of copied module images, role of module functions, and prefix of their names. */
  PLAT_MODULE_REPOSITORY: z.string().default(''),
  /** Type of that registry: ECR, where each repository must be created and opened to Lambda, or a plain one. */
  PLAT_MODULE_REGISTRY: z.enum(['ecr', 'plain']).default('plain'),
  PLAT_MODULE_ROLE: z.string().default(''),
  /** Log group of modules; empty: one group per function. Lambda only. */
  PLAT_MODULE_LOG_GROUP: z.string().default(''),
  PLAT_MODULE_PREFIX: z.string().default('platform-mod'),
  /** Private registries that images may come from: `host:port`, comma-separated. */
  PLAT_REGISTRY_ALLOW: OutboundAllowlist.default(''),
  /** Prefix of the secrets of identity providers: `<prefix>/<provider>`. */
  PLAT_SECRET_IDENTITY_PREFIX: z.string().default('platform/identity'),
  /** Repository of platform releases: `registry/repository`; empty disables updates. */
  PLAT_RELEASE_SOURCE: ReleaseSource.default(''),
  /** Trusted public keys of releases, in the form of `PLAT_MODULE_KEYS` but separate. */
  PLAT_RELEASE_KEYS: TrustedKeys.prefault('[]'),
  /** The target of updates: the local supervisor or Lambda aliases. */
  PLAT_UPDATE_TARGET: z.enum(['local-supervisor', 'lambda-alias']).default('local-supervisor'),
  /** Bake time of a release at each of three traffic steps, within the 300 s of a worker. */
  PLAT_UPDATE_BAKE_SECONDS: integer(30, 1, 60),
  /** URL and token of the local supervisor, which applies releases. */
  PLAT_UPDATE_SUPERVISOR_URL: z.string().default(''),
  PLAT_UPDATE_SUPERVISOR_TOKEN: z.string().default(''),
  /** Lambda only: prefix of function names, and the alias that callers use. */
  PLAT_FUNCTION_PREFIX: z.string().default('platform'),
  PLAT_FUNCTION_ALIAS: z.string().default('live'),
  /** Whether to write metrics in CloudWatch's format. */
  PLAT_METRICS: z.enum(['emf', 'off']).default('off'),
  /** Lambda's name of this function, the dimension of metrics. */
  AWS_LAMBDA_FUNCTION_NAME: z.string().min(1).default('local'),
  /** The lowest log level that is written. */
  PLAT_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** 1: responses that violate the contract fail with status 500. For tests. */
  PLAT_VALIDATE_RESPONSES: z.enum(['0', '1']).default('0'),
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: integer(5, 1, 1_000_000),
  PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: integer(20, 1, 1_000_000),
  /** Steps of identity provider sign-ins, each kind separately, per address. */
  PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: integer(60, 1, 1_000_000),
  PLAT_LIMIT_SETUP_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_REFRESH_PER_MINUTE: integer(30, 1, 1_000_000),
  PLAT_LIMIT_ENROLL_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_BATCH_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_API_PER_MINUTE: integer(600, 1, 1_000_000),
  PLAT_LIMIT_API_BURST: integer(100, 1, 1_000_000),
})

export type Config = z.infer<typeof Config>

/** Parses settings; empty values count as unset. Throws one error that lists all invalid settings. */
export function parseConfig(environment: Record<string, string | undefined>): Config {
  const values = Object.entries(environment).filter(([, value]) => value !== '')
  const parsed = Config.safeParse(Object.fromEntries(values))
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`Invalid settings in the environment:\n  ${problems.join('\n  ')}`)
}
