/**
 * The protocol between the platform and an instance of a module: HTTP requests below a path that no gateway forwards,
 * with a token that only the platform and the instance know. The transport is a Unix socket, a TCP port, or Lambda
 * events.
 *
 * | call                         | response                                                                |
 * | ---------------------------- | ----------------------------------------------------------------------- |
 * | GET /describe                | 200 `Description`                                                       |
 * | POST /configure, /start      | 200 `Description`; the hook runs once, even if the call is repeated     |
 * | POST /stop, /dispose         | 200 `Description`; allowed in every state                               |
 * | GET /health/{name}           | 200, or 503 if Unhealthy: `HealthResponse`                              |
 * | POST /jobs/{id}              | 200 `JobResponse`                                                       |
 * | POST /events                 | 200 `EventsResponse`; the body is `EventsRequest`                       |
 *
 * Errors return a `HookFailure`: 400 for a malformed body, 403 without the token, 404 for an unknown path, job or
 * check, 409 in a state that does not allow the call, 500 if module code throws, 504 on timeout. Only `GET /health`,
 * outside of this path, requires no token.
 */

/** Version of the SDK that the module was built with. */
export const sdkVersion = '0.3.0'

/** Path of the control API, which is not accessible to users. */
export const controlPath = '/_platform/v1'

/**
 * Header with the deployment's token. All requests from the platform carry it, including users' requests to the module.
 */
export const tokenHeader = 'x-platform-token'
/** Header of user requests: a token with `UserClaims` that identifies the user and is valid for 60 seconds. */
export const userHeader = 'x-platform-user'
/** Header with the timeout of a hook, a job or event handlers, in milliseconds; 30 seconds if absent. */
export const timeoutHeader = 'x-platform-grace-ms'
/** Header of responses to the platform: published events that no earlier response carried, as base64url of JSON. */
export const publishedHeader = 'x-platform-published'
/** Header of responses of an instance that has not started or has stopped: the module has not received the request. */
export const notAskedHeader = 'x-platform-not-asked'

/** Environment variables of a module's process. */
export const environmentNames = {
  token: 'PLATFORM_MODULE_TOKEN',
  organisation: 'PLATFORM_ORGANISATION_ID',
  deployment: 'PLATFORM_DEPLOYMENT_ID',
  /** The module id in the manifest. An instance with another id in its code never configures itself. */
  module: 'PLATFORM_MODULE_ID',
  /** `1` lets the instance configure and start itself, without requests from the platform. */
  startsItself: 'PLATFORM_STARTS_ITSELF',
  /** Path of the Unix socket to listen on; otherwise `PORT` on `HOST`. */
  socket: 'PLATFORM_SOCKET',
  /** Path of a file to write the module's description to. The process then exits. Author tools use it. */
  describe: 'PLATFORM_DESCRIBE_FILE',
} as const

/** States of an instance. */
export const states = ['Loading', 'Configured', 'Started', 'Stopped', 'Disposed', 'Failed'] as const
/** One of `states`. */
export type State = (typeof states)[number]

/** An event that a module publishes, of type `module.<own id>.<name>`. */
export interface PublishedEvent {
  type: string
  subject?: string
  data: Record<string, unknown>
}

/** Limits of the published events in one response. Later responses carry the remaining events. */
export const publishedLimits = {
  /** Number of events. */
  events: 20,
  /**
   * Size of the header's value, in bytes. Node.js rejects headers of more than 16 KiB in total, and the response has
   * other headers.
   */
  headerBytes: 13_312,
  /** Size of one event's data as JSON, in bytes. */
  dataBytes: 8192,
} as const

/** Response of `GET /describe`, `POST /configure`, `/start`, `/stop` and `/dispose`. */
export interface Description {
  sdkVersion: string
  id: string
  version: string
  state: State
  slots: readonly Record<string, unknown>[]
  healthChecks: readonly { name: string; tags: readonly string[] }[]
  jobs: readonly { id: string; description: string; intervalSeconds: number }[]
  /** Subscribed event types; complete once the module is Configured. */
  subscriptions: readonly string[]
}

/** Response to a failed request from the platform. */
export interface HookFailure {
  error: 'hook_failed' | 'hook_timeout' | 'forbidden' | 'not_found' | 'wrong_state' | 'bad_request'
  message: string
}

/** Response of a health check. */
export interface HealthResponse {
  status: 'Healthy' | 'Degraded' | 'Unhealthy'
  description?: string
}

/** Response of a job. `hasRun` is false if the previous run is still active and no new run was started. */
export interface JobResponse {
  hasRun: boolean
}

/** Domain events for a module as CloudEvents, in the order of delivery to handlers. */
export interface EventsRequest {
  events: readonly Record<string, unknown>[]
}

/**
 * Ids of the handled events, and the errors of the others. A failed event may be sent again; handlers that have handled
 * it do not receive it twice.
 */
export interface EventsResponse {
  handled: readonly string[]
  failed: readonly { id: string; message: string }[]
}

/** Claims of the token in `userHeader`. Times are in seconds since the Unix epoch. */
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
