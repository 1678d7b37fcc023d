import type { Heartbeat } from '@platform/contract/relay'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { getText, RetryableError } from '../http.ts'
import { isJsonObject } from '../json.ts'
import { info, messageOf, warn } from '../log.ts'
import { isNewer, relayVersion, releaseKeyPem } from '../version.ts'
import { isSigned, type Program, Programs } from './programs.ts'
import { isSupervised } from './supervisor.ts'

const run = promisify(execFile)
const testLimitMs = 30_000
// If a staged version has waited this long for running jobs, the relay accepts no more jobs.
const idleWaitMs = 600_000

type UpdaterOptions = {
  stateFolder: string
  server: string
  isIdle: () => boolean
  drain: () => void
  /** Ends this relay, so that the supervisor starts the next program. */
  swap: () => void
}

/** Downloads, verifies and tests the version of the relay that the platform offers, and hands over to it. */
export class Updater {
  readonly #options: UpdaterOptions
  readonly #programs: Programs
  #hasFailed = false
  #stagedAtMs = performance.now()
  #offeredVersion: Pick<Program, 'id' | 'version'> | undefined
  #isStaging = false
  #isDraining = false
  #problem: string | undefined

  constructor(options: UpdaterOptions) {
    this.#options = options
    this.#programs = new Programs(options.stateFolder)
  }

  /** The progress of the update, for the next heartbeat. */
  get report(): Heartbeat['update'] {
    if (this.#offeredVersion === undefined) return undefined
    const { id, version } = this.#offeredVersion
    if (version === relayVersion && this.#problem === undefined) return { id, status: 'completed' }
    if (version === relayVersion) return { id, status: 'pending', reason: this.#problem }
    const reasonToSkip = skipReasonFor(version)
    if (reasonToSkip !== undefined) return { id, status: 'skipped', reason: reasonToSkip }
    const { candidate } = this.#programs
    const ownCandidate = candidate?.id === id ? candidate : undefined
    const status = ownCandidate?.state === 'rolledBack' ? 'rolledBack' : 'pending'
    const reason = status === 'rolledBack' ? ownCandidate?.reason : (this.#problem ?? ownCandidate?.reason)
    return { id, status, ...(reason && { reason: reason.slice(0, 200) }) }
  }

  /** Continues the update after an accepted heartbeat. `offer` is `update` in the response. */
  onAccepted(offer: unknown): void {
    try {
      this.#proceed()
    } catch (error) {
      warn(`The update of the relay waits: ${this.#setProblem(error)}.`)
    }
    const parsed = parseOffer(offer)
    this.#offeredVersion = parsed
    if (parsed) void this.#consider(parsed)
  }

  /** Records that a heartbeat has failed. */
  onFailed(): void {
    this.#hasFailed = true
  }

  // Performs the next step. Throws if a file cannot be written, for example because the disk is full. The next
  // heartbeat then repeats the step.
  #proceed(): void {
    const { candidate } = this.#programs
    if (candidate?.state === 'trying' && isSupervised && candidate.version === relayVersion) {
      this.#programs.commit()
      info(`Relay ${relayVersion} is in use.`)
    } else if (candidate?.state === 'paused') this.#conclude()
    // The candidate is `trying` while the relay drains, or if the supervisor could not record the trial.
    else if (candidate?.state === 'staged' || candidate?.state === 'trying') this.#swapWhenIdle()
    else return
    this.#problem = undefined
  }

  // This program has replaced the candidate and reached the platform. If an earlier heartbeat of this program failed,
  // the platform may have been unavailable to both programs, so the candidate is tried again.
  #conclude(): void {
    if (!this.#hasFailed) {
      this.#programs.rollBack()
      const { version, reason } = this.#programs.candidate!
      return warn(`Relay ${version} was replaced by ${relayVersion}: ${reason}.`)
    }
    this.#programs.try({ isRepeated: true })
    this.#options.swap()
  }

  #swapWhenIdle(): void {
    const isIdle = this.#options.isIdle()
    if (!isIdle && performance.now() - this.#stagedAtMs <= idleWaitMs) return
    // The trial is recorded before the relay drains, because the relay must keep accepting jobs if the record fails.
    if (!this.#isDraining) this.#programs.try()
    if (isIdle) return this.#options.swap()
    this.#isDraining = true
    this.#options.drain()
  }

  async #consider(offer: Program): Promise<void> {
    if (this.#isStaging || skipReasonFor(offer.version) !== undefined) return
    this.#isStaging = true
    try {
      const { candidate } = this.#programs
      if (candidate?.id === offer.id && candidate.sha256 === offer.sha256) return
      await this.#stage(offer)
      this.#problem = undefined
    } catch (error) {
      this.#fail(offer, error)
    } finally {
      this.#isStaging = false
    }
  }

  #fail(offer: Program, error: unknown): void {
    const problem = this.#setProblem(error)
    warn(`Relay ${offer.version} cannot be used: ${problem}.`)
    if (error instanceof RetryableError || isSystemError(error)) return
    try {
      this.#programs.reject(offer, problem)
    } catch (fileError) {
      warn(`Relay ${offer.version} could not be rejected: ${messageOf(fileError)}.`)
    }
  }

  #setProblem(error: unknown): string {
    this.#problem = messageOf(error).slice(0, 200)
    return this.#problem
  }

  async #stage(program: Program): Promise<void> {
    const { version, sha256, signature } = program
    const text = await getText(`${this.#options.server}/relay/relay.mjs`)
    // The platform may have been updated since its offer.
    if (createHash('sha256').update(text).digest('hex') !== sha256)
      throw new RetryableError('its file has another hash')
    if (!isSigned(Buffer.from(text), signature)) throw new Error('the release key has not signed it')
    this.#programs.write(program, text)
    const path = this.#programs.path(program)
    const { stdout } = await run(process.execPath, [path, '--version'], { timeout: testLimitMs })
    if (stdout !== `platform-relay ${version}\n`) throw new Error('it has another version')
    this.#programs.stage(program)
    this.#stagedAtMs = performance.now()
    info(`Relay ${version} is verified. It starts when no script is running.`)
  }
}

/** Whether a system call has failed, for example because of a full disk. */
const isSystemError = (error: unknown): boolean => error instanceof Error && 'syscall' in error

/** Returns the reason why this relay does not install a version, if any. */
function skipReasonFor(version: string): string | undefined {
  if (releaseKeyPem === undefined)
    return 'The relay is not part of a release, so it cannot verify updates. Install its program again'
  return isNewer(version, relayVersion) ? undefined : `The relay has version ${relayVersion}`
}

function parseOffer(value: unknown): Program | undefined {
  if (!isJsonObject(value)) return undefined
  const { id, version, sha256, signature } = value
  const isValid = typeof version === 'string' && /^\d+\.\d+\.\d+[\w.+-]{0,50}$/.test(version)
  if (!isValid || typeof id !== 'string' || typeof sha256 !== 'string' || typeof signature !== 'string')
    return undefined
  return /^\w{1,40}$/.test(id) && /^[0-9a-f]{64}$/.test(sha256) ? { id, version, sha256, signature } : undefined
}
