import * as z from 'zod'
import { OutboundAllow } from './outbound-allow.ts'

const whole = (fallback: number, min: number, max: number) =>
  z.coerce.number().int().min(min).max(max).default(fallback)

/** Settings of the functions (D53). The runner and the deployment set the same names. */
const Config = z.object({
  /** Name of the one table. */
  PLAT_TABLE: z.string().min(1).default('platform'),
  /** URL of the queue that announces jobs. */
  PLAT_QUEUE_JOBS: z.string().default(''),
  /** URLs of the queues that announce batches, events to be booked, and webhooks with deliveries. */
  PLAT_QUEUE_BATCHES: z.string().default(''),
  PLAT_QUEUE_EVENTS: z.string().default(''),
  PLAT_QUEUE_WEBHOOKS: z.string().default(''),
  PLAT_SECRET_SIGNING_KEYS: z.string().default('platform/signing-keys'),
  PLAT_SECRET_ADMIN_TOKEN: z.string().default('platform/initial-admin-token'),
  /** Where the API answers: what relays and people are told. */
  PLAT_API_URL: z.string().default('http://127.0.0.1:8080'),
  /** Prints the initial admin token (D54). */
  PLAT_HOW_TO_RETRIEVE: z.string().default('npm run -s admin-token'),
  /** Where built files lie that functions hand out, the relay program among them. */
  PLAT_ASSETS_DIR: z.string().default('dist'),
  /** Rings the gateway that holds waiting relays; empty where no gateway can hold a request. */
  PLAT_WAKE_URL: z.string().default(''),
  PLAT_HEARTBEAT_INTERVAL_SECONDS: whole(30, 1, 3600),
  /** What no message has led to its consumer by then is announced again. */
  PLAT_ANNOUNCE_AGAIN_SECONDS: whole(30, 1, 3600),
  /** Private addresses that outbound calls may reach all the same: `host:port`, separated by commas. */
  PLAT_OUTBOUND_ALLOW: OutboundAllow.default(''),
  /** Ends, stalls or breaks the process at a named place. For tests. */
  PLAT_FAILPOINT: z.string().default(''),
  PLAT_VERSION: z.string().default('0.1.0'),
  /** The least important lines that are logged. */
  PLAT_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** 1: an answer unlike the contract becomes a 500. For tests; production does not pay for it. */
  PLAT_CHECK_RESPONSES: z.enum(['0', '1']).default('0'),
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: whole(5, 1, 1_000_000),
  PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: whole(20, 1, 1_000_000),
  PLAT_LIMIT_SETUP_PER_MINUTE: whole(10, 1, 1_000_000),
  PLAT_LIMIT_REFRESH_PER_MINUTE: whole(30, 1, 1_000_000),
  PLAT_LIMIT_ENROLL_PER_MINUTE: whole(10, 1, 1_000_000),
  PLAT_LIMIT_BATCH_PER_MINUTE: whole(10, 1, 1_000_000),
  PLAT_LIMIT_API_PER_MINUTE: whole(600, 1, 1_000_000),
  PLAT_LIMIT_API_BURST: whole(100, 1, 1_000_000),
})

export type Config = z.infer<typeof Config>

/** Parses settings; throws one error that names every bad one. */
export function parseConfig(environment: Record<string, string | undefined>): Config {
  const parsed = Config.safeParse(environment)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`Bad settings in the environment:\n  ${problems.join('\n  ')}`)
}

/** The settings of this process, parsed once at start. */
export const config: Config = parseConfig(process.env)
