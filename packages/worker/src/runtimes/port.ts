import type { Deployment } from '@platform/core/modules/deployment'

/** An image by digest, and the metadata for its process. */
export interface DeploymentSpec {
  /** A short id, chosen by the caller. Deployment is idempotent for the same id. */
  id: string
  moduleId: string
  version: string
  repository: string
  /** Digest of the verified manifest or index. */
  digest: string
  organisationId: string
  /**
   * Whether the instance configures and starts itself, like an instance that replaces another. The platform runs the
   * hooks of a release's first instance, so that all modules are configured before any starts.
   */
  startsItself: boolean
  /**
   * Whether the module may run as a process if containers are unavailable and the operator has not selected processes.
   */
  mayRunAsProcess: boolean
}

/** One request for any purpose: lifecycle, health, jobs, events and traffic all use HTTP. */
export interface ModuleRequest {
  method: string
  path: string
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array
}

export interface ModuleResponse {
  status: number
  /** Names are lower-case; repeated headers are joined by commas, `set-cookie` is omitted. */
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

export interface RequestLimits {
  timeoutMs: number
  maxBytes: number
}

export interface DeploymentStatus {
  deployment: Deployment
  /** `failed`: the deployment has crashed too often and is not restarted. */
  state: 'running' | 'restarting' | 'failed'
  crashes: number
  lastCrash?: string
}

export type RuntimeErrorKind =
  | 'unavailable'
  | 'timeout'
  /** The instance ended, or its response is incomplete. */
  | 'crashed'
  /** The instance ended before it accepted requests. */
  | 'init_failed'
  | 'too_large'
  /** The runtime cannot run this image, or the request is invalid. */
  | 'refused'

/** Thrown by runtimes. The message is for operators and module authors. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError'
  readonly problem: RuntimeErrorKind

  constructor(problem: RuntimeErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.problem = problem
  }
}

export type ModuleClient = Pick<ModuleRuntime, 'request'>

/** Runs module code, isolated from the platform. The callers run the lifecycle hooks. */
export interface ModuleRuntime {
  /** Runs a release and returns once it accepts requests. Idempotent for the same id. */
  deploy: (spec: DeploymentSpec) => Promise<Deployment>
  /** Calls a deployment with its own token, without which it accepts only `GET /health`. Throws `RuntimeError`. */
  request: (deployment: Deployment, request: ModuleRequest, limits: RequestLimits) => Promise<ModuleResponse>
  /** Ends a deployment: SIGTERM, grace period, SIGKILL; or deletes its function. A missing one is not an error. */
  remove: (deployment: Deployment, graceMs: number) => Promise<void>
  list: () => Promise<DeploymentStatus[]>
  /** Removes stored images that no deployment uses, except those with these digests. */
  tidy?: (digests: readonly string[]) => Promise<void>
}
