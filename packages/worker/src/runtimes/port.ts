import { type Deployment } from '@platform/core/modules/record'

/** What a runtime is asked to run: an image by digest, and what its process is told. */
export interface DeploymentSpec {
  /** Chosen by the caller, and short: deploying the same id twice is deploying once. */
  id: string
  moduleId: string
  version: string
  /** `registry/repository`. */
  repository: string
  /** Of the manifest or index that was verified. */
  digest: string
  organisationId: string
  /**
   * Whether the instance configures and starts itself, as one does that takes the place of another. The first instance of a
   * release is led through its hooks by the platform, which lets all of them be configured before any starts.
   */
  startsItself: boolean
}

/** One request, whatever it is about: lifecycle, health, jobs, events and traffic are all HTTP-shaped. */
export interface ModuleRequest {
  method: string
  /** With its query. */
  path: string
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array
}

export interface ModuleResponse {
  status: number
  /** Names are lower-case; what came more than once is joined by commas, `set-cookie` is left out. */
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

/** How much of an answer is waited for. */
export interface RequestLimits {
  timeoutMs: number
  maxBytes: number
}

/** What a runtime knows of something that it runs. */
export interface DeploymentStatus {
  deployment: Deployment
  /** `failed`: it crashed so often that it is not started again (D43). */
  state: 'running' | 'restarting' | 'failed'
  /** Crashes of the last ten minutes. */
  crashes: number
  lastCrash?: string
}

export type RuntimeErrorKind =
  /** It does not run just now. */
  | 'unavailable'
  /** No answer in time. */
  | 'timeout'
  /** It ended, or its answer broke off. */
  | 'crashed'
  /** It ended before it could be asked anything. */
  | 'init_failed'
  /** Its answer is larger than the limit. */
  | 'too_large'
  /** This runtime cannot run such an image. */
  | 'refused'

/** Thrown by runtimes. The message is for operators and authors. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeFailure'
  readonly problem: RuntimeErrorKind

  constructor(problem: RuntimeErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.problem = problem
  }
}

/** Whatever can ask deployments, and need not be able to do more. */
export type ModuleClient = Pick<ModuleRuntime, 'request'>

/** Where module code runs: apart from the platform (D42). A runtime knows nothing of lifecycles. */
export interface ModuleRuntime {
  /** Runs a release, and answers once it can be asked. The same assignment twice is one deployment. */
  deploy: (assignment: DeploymentSpec) => Promise<Deployment>
  /** Asks a deployment. The platform's token goes with every request: nobody else can ask. Throws `RuntimeFailure`. */
  request: (deployment: Deployment, request: ModuleRequest, limits: RequestLimits) => Promise<ModuleResponse>
  /** Ends it: SIGTERM, the grace, SIGKILL; or its function is deleted. Something that has gone already is fine. */
  remove: (deployment: Deployment, graceMs: number) => Promise<void>
  /** All that it runs. */
  list: () => Promise<DeploymentStatus[]>
  /** Removes the images that it keeps and does not run, but for those of these digests. */
  tidy?: (digests: readonly string[]) => Promise<void>
}
