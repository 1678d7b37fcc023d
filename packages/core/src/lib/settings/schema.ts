import * as z from 'zod'
import { TrustedKeys } from './trusted-keys.ts'
import { ModuleSources } from './module-sources.ts'
import { OutboundAllowlist } from './allowlist.ts'
import { ReleaseSource } from './release-source.ts'

/** A whole number, in digits alone; undefined where it is not set. */
export const optionalInteger = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`)
    .optional()

/** A whole number, in digits alone. */
export const integer = (fallback: number, min: number, max: number) =>
  optionalInteger(min, max).transform((value) => value ?? fallback)

/** Settings of the functions (D53). The runner and the deployment set the same names. */
export const Config = z.object({
  /** Name of the one table. */
  PLAT_TABLE: z.string().min(1).default('platform'),
  /** URL of the queue that announces jobs. */
  PLAT_QUEUE_JOBS: z.string().default(''),
  /** URLs of the queues that announce batches, events to be booked, and webhooks with deliveries. */
  PLAT_QUEUE_BATCHES: z.string().default(''),
  PLAT_QUEUE_EVENTS: z.string().default(''),
  PLAT_QUEUE_WEBHOOKS: z.string().default(''),
  /** URLs of the queues that announce work of the platform on itself, and events that wait for modules. */
  PLAT_QUEUE_UPDATES: z.string().default(''),
  PLAT_QUEUE_MODULES: z.string().default(''),
  PLAT_SECRET_SIGNING_KEYS: z.string().default('platform/signing-keys'),
  PLAT_SECRET_ADMIN_TOKEN: z.string().default('platform/initial-admin-token'),
  /** Holds, as JSON, the credentials of registries: `{"registry.example.com": {"username": "…", "password": "…"}}`. */
  PLAT_SECRET_REGISTRIES: z.string().default('platform/registries'),
  /** Where the API answers: what relays and people are told. */
  PLAT_API_URL: z.string().default('http://127.0.0.1:8080'),
  /** Prints the initial admin token (D54). */
  PLAT_HOW_TO_RETRIEVE: z.string().default('npm run -s admin-token'),
  /** Where built files lie that functions hand out, the relay program among them; empty for `dist` beside a function's code. */
  PLAT_ASSETS_DIR: z.string().default(''),
  /** Rings the gateway that holds waiting relays; empty where no gateway can hold a request. */
  PLAT_WAKE_URL: z.string().default(''),
  PLAT_HEARTBEAT_INTERVAL_SECONDS: integer(30, 1, 3600),
  /** What no message has led to its consumer by then is announced again. */
  PLAT_ANNOUNCE_AGAIN_SECONDS: integer(30, 1, 3600),
  /** Private addresses that outbound calls may reach all the same: `host:port`, separated by commas. */
  PLAT_OUTBOUND_ALLOW: OutboundAllowlist.default(''),
  /** Ends, stalls or breaks the process at a named place. For tests. */
  PLAT_FAILPOINT: z.string().default(''),
  /** Repositories whose modules the catalog shows, separated by commas; `<registry>/*` where the registry lists its own. */
  PLAT_MODULE_SOURCES: ModuleSources.default(''),
  /** Public keys whose signatures count (D46), as JSON: `[{"name": "…", "pem": "…", "repositories": ["…"]}]`. */
  PLAT_MODULE_KEYS: TrustedKeys.prefault('[]'),
  /** true: modules without a trusted signature may be installed, which is audited. */
  PLAT_ALLOW_UNVERIFIED_MODULES: z.enum(['true', 'false']).default('false'),
  /** What runs modules: the host of the one-machine platform, or Lambda. */
  PLAT_MODULE_RUNTIME: z.enum(['hosted', 'lambda']).default('hosted'),
  /** A worker of an operation that has said nothing for so long has gone, and another one takes over. */
  PLAT_OPERATION_LEASE_SECONDS: integer(60, 3, 3600),
  /** How often the platform looks at its modules, and calls their background jobs. */
  PLAT_MODULE_TICK_SECONDS: integer(60, 1, 3600),
  PLAT_MODULE_HOST_URL: z.string().default(''),
  PLAT_MODULE_HOST_TOKEN: z.string().default(''),
  /** Where module images are copied to, which role they run as, and what their functions are named after; Lambda only. */
  PLAT_MODULE_REPOSITORY: z.string().default(''),
  /** What that is in: Amazon's registry, which wants each repository made and opened to Lambda, or one that asks for nothing. */
  PLAT_MODULE_REGISTRY: z.enum(['ecr', 'plain']).default('plain'),
  PLAT_MODULE_ROLE: z.string().default(''),
  /** What modules write their logs into; empty: a group of each function's own. Lambda only. */
  PLAT_MODULE_LOG_GROUP: z.string().default(''),
  PLAT_MODULE_PREFIX: z.string().default('platform-mod'),
  /** Registries on private addresses that images may come from all the same: `host:port`, separated by commas. */
  PLAT_REGISTRY_ALLOW: OutboundAllowlist.default(''),
  /** Holds the secrets of identity providers, below `<prefix>/<provider>`. */
  PLAT_SECRET_IDENTITY_PREFIX: z.string().default('platform/identity'),
  /** Where releases of the platform are: `registry/repository`; empty: updates are off. */
  PLAT_RELEASE_SOURCE: ReleaseSource.default(''),
  /** Public keys whose signatures make a release; the same form as `PLAT_MODULE_KEYS`, and none of those. */
  PLAT_RELEASE_KEYS: TrustedKeys.prefault('[]'),
  /** What the functions run on, where releases are applied: the one-machine platform, or Lambda. */
  PLAT_UPDATE_TARGET: z.enum(['local-supervisor', 'lambda-alias']).default('local-supervisor'),
  /** How long a release is watched at each share of what comes in; three times, within the 300 s of a worker. */
  PLAT_UPDATE_BAKE_SECONDS: integer(30, 1, 60),
  /** The one-machine platform, as releases are handed to it. */
  PLAT_UPDATE_HOST_URL: z.string().default(''),
  PLAT_UPDATE_HOST_TOKEN: z.string().default(''),
  /** What the platform's functions are named after, and the alias that their callers call; Lambda only. */
  PLAT_FUNCTION_PREFIX: z.string().default('platform'),
  PLAT_FUNCTION_ALIAS: z.string().default('live'),
  /** Whether metrics are written, as lines that CloudWatch reads. */
  PLAT_METRICS: z.enum(['emf', 'off']).default('off'),
  /** Lambda's own name of this function: metrics are told apart by it. */
  AWS_LAMBDA_FUNCTION_NAME: z.string().min(1).default('local'),
  /** The least important lines that are logged. */
  PLAT_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** 1: an answer unlike the contract becomes a 500. For tests; production does not pay for it. */
  PLAT_CHECK_RESPONSES: z.enum(['0', '1']).default('0'),
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: integer(5, 1, 1_000_000),
  PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: integer(20, 1, 1_000_000),
  /** Steps of sign-ins with identity providers, each kind by itself, from one address. */
  PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: integer(60, 1, 1_000_000),
  PLAT_LIMIT_SETUP_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_REFRESH_PER_MINUTE: integer(30, 1, 1_000_000),
  PLAT_LIMIT_ENROLL_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_BATCH_PER_MINUTE: integer(10, 1, 1_000_000),
  PLAT_LIMIT_API_PER_MINUTE: integer(600, 1, 1_000_000),
  PLAT_LIMIT_API_BURST: integer(100, 1, 1_000_000),
})

export type Config = z.infer<typeof Config>

/** Parses settings; an empty one counts as unset. Throws one error that names every bad one. */
export function parseConfig(environment: Record<string, string | undefined>): Config {
  const given = Object.entries(environment).filter(([, value]) => value !== '')
  const parsed = Config.safeParse(Object.fromEntries(given))
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`Bad settings in the environment:\n  ${problems.join('\n  ')}`)
}
