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
// After this time, the relay accepts no more jobs until its scripts have ended.
const idleWaitMs = 600_000

type UpdaterOptions = {
  stateFolder: string
  server: string
  isIdle: () => boolean
  /** Accepts no more jobs. */
  drain: () => void
  /** Ends this relay, so that the supervisor starts the next program. */
  swap: () => void
}

/** Downloads, verifies and tests the version of the relay that the platform offers, and hands over to it. */
export class Updater {
  readonly #options: UpdaterOptions
  readonly #programs: Programs
  #hasFailed = false
  #stagedMs = performance.now()
  #offered: Pick<Program, 'id' | 'version'> | undefined
  #isStaging = false
  #problem: string | undefined

  constructor(options: UpdaterOptions) {
    this.#options = options
    this.#programs = new Programs(options.stateFolder)
  }

  /** The progress of the update, for the next heartbeat. */
  get report(): Heartbeat['update'] {
    if (this.#offered === undefined) return undefined
    const { id, version } = this.#offered
    if (version === relayVersion) return { id, status: 'completed' }
    const skipped = skipReason(version)
    if (skipped !== undefined) return { id, status: 'skipped', reason: skipped }
    const candidate = this.#programs.candidate
    const reason = candidate?.id === id ? candidate.reason : this.#problem
    const status = candidate?.id === id && candidate.state === 'rolledBack' ? 'rolledBack' : 'pending'
    return { id, status, ...(reason && { reason: reason.slice(0, 200) }) }
  }

  /** Call it after each heartbeat that the platform has accepted. */
  onAccepted(offer: unknown): void {
    const candidate = this.#programs.candidate
    if (candidate?.state === 'trying' && isSupervised && candidate.version === relayVersion) {
      this.#programs.commit()
      info(`Relay ${relayVersion} is in use.`)
    } else if (candidate?.state === 'paused') this.#conclude()
    else if (candidate?.state === 'staged') this.#swapWhenIdle()
    const parsed = parseOffer(offer)
    this.#offered = parsed
    if (parsed) void this.#consider(parsed)
  }

  /** Call it after each heartbeat that must be repeated. */
  onFailed(): void {
    this.#hasFailed = true
  }

  // The previous program reached the platform. If it did not at once, the platform may have been down for both.
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
    if (performance.now() - this.#stagedMs > idleWaitMs) this.#options.drain()
    if (!this.#options.isIdle()) return
    this.#programs.try()
    this.#options.swap()
  }

  async #consider(offer: Program): Promise<void> {
    const known = this.#programs.candidate
    if (
      this.#isStaging ||
      (known?.id === offer.id && known.sha256 === offer.sha256) ||
      skipReason(offer.version) !== undefined
    )
      return
    this.#isStaging = true
    try {
      await this.#stage(offer)
      this.#problem = undefined
    } catch (error) {
      this.#problem = messageOf(error).slice(0, 200)
      warn(`Relay ${offer.version} cannot be used: ${this.#problem}.`)
      if (!(error instanceof RetryableError)) this.#programs.reject(offer, this.#problem)
    } finally {
      this.#isStaging = false
    }
  }

  async #stage(program: Program): Promise<void> {
    const { version, sha256, signature } = program
    const text = await getText(`${this.#options.server}/relay/relay.mjs`)
    // The platform may have been updated in between.
    if (createHash('sha256').update(text).digest('hex') !== sha256)
      throw new RetryableError('its file has another hash')
    if (!isSigned(Buffer.from(text), signature)) throw new Error('the release key has not signed it')
    this.#programs.write(program, text)
    const path = this.#programs.path(program)
    const { stdout } = await run(process.execPath, [path, '--version'], { timeout: testLimitMs })
    if (stdout !== `platform-relay ${version}\n`) throw new Error('it has another version')
    this.#programs.stage(program)
    this.#stagedMs = performance.now()
    info(`Relay ${version} is verified. It starts when no script is running.`)
  }
}

/** Why this relay does not install a version. */
function skipReason(version: string): string | undefined {
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
