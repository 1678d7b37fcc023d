/**
 * How the platform speaks to a module's instance: over HTTP below one path that no gateway forwards, with a token that only
 * the two of them know. The same over a socket, a port, or as events of Lambda.
 *
 * | call                         | answer                                                                  |
 * | ---------------------------- | ----------------------------------------------------------------------- |
 * | GET /describe                | 200 `Description`                                                       |
 * | POST /configure, /start      | 200 `Description`; each works once, and answers the same when repeated  |
 * | POST /stop, /dispose         | 200 `Description`; dispose works in every state                         |
 * | GET /health/{name}           | 200, or 503 where Unhealthy: `HealthAnswer`                             |
 * | POST /jobs/{id}              | 200 `JobAnswer`                                                         |
 * | POST /events                 | 200 `EventsAnswer`; the body is `EventsRequest`                         |
 *
 * What fails answers a `HookFailure`: 403 without the token, 404, 409 in a state that does not allow it, 500 where the
 * module's code threw, 504 where it took too long. `GET /health` alone, beside this path, asks for no token (D9).
 */

export const sdkVersion = '0.3.0'

export const controlPath = '/_platform/v1'

/** Carries the deployment's token; on every request of the platform, module traffic included. */
export const tokenHeader = 'x-platform-token'
/** On a request of a user: a token of 60 seconds that says who it is (D48), with `UserClaims`. */
export const userHeader = 'x-platform-user'
/** How long a hook, a job or the handlers of events may take; 30 seconds where it is absent. */
export const graceHeader = 'x-platform-grace-ms'
/** On any answer to the platform: events that the module has published since the last one, as base64url of JSON. */
export const publishedHeader = 'x-platform-published'
/** On the answer of an instance that has not started, or has stopped: the module itself has heard nothing of the request. */
export const notAskedHeader = 'x-platform-not-asked'

/** What a module's process is told by its environment. */
export const environmentNames = {
  token: 'PLATFORM_MODULE_TOKEN',
  organisation: 'PLATFORM_ORGANISATION_ID',
  deployment: 'PLATFORM_DEPLOYMENT_ID',
  /** The id in the manifest. Code of another id is never configured where that happens by itself. */
  module: 'PLATFORM_MODULE_ID',
  /** `1`: configure and start without being asked (`Assignment.startsItself`). */
  startsItself: 'PLATFORM_STARTS_ITSELF',
  /** Path of the Unix socket to listen on; else `PORT` on `HOST`. */
  socket: 'PLATFORM_SOCKET',
  /** Path of a file: write there what the module says of itself, and end. For tools of authors. */
  describe: 'PLATFORM_DESCRIBE_FILE',
} as const

export const states = ['Loading', 'Configured', 'Started', 'Stopped', 'Disposed', 'Failed'] as const
export type State = (typeof states)[number]

/** An event that a module publishes: of type `module.<its id>.<name>`. */
export interface PublishedEvent {
  type: string
  subject?: string
  data: Record<string, unknown>
}

/** The most that one answer carries of published events; the rest goes with the next ones. */
export const publishedLimits = {
  events: 20,
  /** Of the header's value. Node refuses heads of more than 16 KiB, and the answer has other headers too. */
  headerBytes: 13_312,
  /** Of the JSON of one event's data. */
  dataBytes: 8192,
} as const

/** Answer of `GET /describe`, `POST /configure`, `/start`, `/stop` and `/dispose`. */
export interface Description {
  sdkVersion: string
  id: string
  version: string
  state: State
  slots: readonly Record<string, unknown>[]
  healthChecks: readonly { name: string; tags: readonly string[] }[]
  jobs: readonly { id: string; description: string; intervalSeconds: number }[]
  /** Event types that it has subscribed to; complete once it is Configured. */
  subscriptions: readonly string[]
}

/** Answer to a request of the platform that failed in the module. */
export interface HookFailure {
  error: 'hook_failed' | 'hook_timeout' | 'forbidden' | 'not_found' | 'wrong_state' | 'bad_request'
  message: string
}

/** Answer of one health check. */
export interface HealthAnswer {
  status: 'Healthy' | 'Degraded' | 'Unhealthy'
  description?: string
}

/** Answer of a job that has ended well, or that was not begun because it still runs. */
export interface JobAnswer {
  hasRun: boolean
}

/** Domain events for a module: CloudEvents, in the order that they are handed to its handlers. */
export interface EventsRequest {
  events: readonly Record<string, unknown>[]
}

/** What became of each event. One that failed may be sent again: who has handled it already does not see it twice. */
export interface EventsAnswer {
  handled: readonly string[]
  failed: readonly { id: string; message: string }[]
}

/** What the token in `userHeader` says. Times are seconds since 1970. */
export interface UserClaims {
  /** The module's id. */
  aud: string
  /** The user's id. */
  sub: string
  /** The organisation's id. */
  org: string
  permissions: readonly string[]
  exp: number
}
