import { createPublicKey, verify } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readIfPresent, writeDurably } from '../files.ts'
import { isJsonObject, parseJsonObject } from '../json.ts'
import { messageOf, warn } from '../log.ts'
import { isNewer, relayVersion, releaseKeyPem } from '../version.ts'

/** A version of the relay program. `id` identifies the update. `signature` is the signature of the release key. */
export type Program = { id: string; version: string; sha256: string; signature: string }

/**
 * The program that may replace the active one. `staged`: it is verified and waits for running jobs. `trying`: it has to
 * complete a heartbeat. `paused`: it has completed none, and the previous program checks whether the platform is
 * reachable. `rolledBack`: it is not used.
 */
export type Candidate = Program & { state: (typeof states)[number]; tries: number; reason?: string | undefined }

const states = ['staged', 'trying', 'paused', 'rolledBack'] as const

type StoredState = { active?: Program | undefined; previous?: Program | undefined; candidate?: Candidate | undefined }

const maxTries = 3

/**
 * The downloaded programs and their recorded state. Each change of the state is one durable write, so that after a kill
 * the state is either the old or the new one. The installed file is never changed.
 */
export class Programs {
  readonly #folder: string
  readonly #stateFile: string

  constructor(stateFolder: string) {
    this.#folder = join(stateFolder, 'programs')
    this.#stateFile = join(this.#folder, 'state.json')
  }

  get candidate(): Candidate | undefined {
    return this.#read().candidate
  }

  path({ version, sha256 }: Program): string {
    return join(this.#folder, `${version.replaceAll(/[^\w.+-]/g, '_')}-${sha256.slice(0, 16)}.mjs`)
  }

  write(program: Program, text: string): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    writeDurably(this.path(program), text)
  }

  stage(program: Program): void {
    this.#change({ candidate: { ...program, state: 'staged', tries: 0 } })
  }

  /** Records a program that cannot be staged as `rolledBack`. */
  reject(program: Program, reason: string): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    this.#change({ candidate: { ...programOf(program), state: 'rolledBack', tries: 0, reason } })
  }

  /** Makes the candidate the next program to start. If `isRepeated`, the last try does not count. */
  try({ isRepeated = false } = {}): void {
    this.#setCandidateState('trying', ({ tries }) => ({ tries: isRepeated ? Math.max(0, tries - 1) : tries }))
  }

  pause(reason: string): void {
    this.#setCandidateState('paused', () => ({ reason }))
  }

  rollBack(): void {
    this.#setCandidateState('rolledBack')
  }

  /**
   * Makes the candidate the active program after its first heartbeat, and removes all other programs except the
   * previous one.
   */
  commit(): void {
    const { active, candidate } = this.#read()
    if (candidate) this.#change({ active: programOf(candidate), previous: active, candidate: undefined })
    try {
      this.#clear()
    } catch (error) {
      warn(`Earlier programs of the relay could not be removed: ${messageOf(error)}.`)
    }
  }

  /**
   * Returns the program to start next; undefined for the program of this process. A trial is counted before it starts,
   * so that a program that crashes this machine is not tried forever. Scripts may be able to write the folder, so each
   * program is verified.
   */
  next(): (Program & { isTrial: boolean }) | undefined {
    const { active, previous, candidate } = this.#read()
    try {
      if (candidate?.state === 'trying' && this.#startTrial(candidate))
        return { ...programOf(candidate), isTrial: true }
    } catch (error) {
      warn(`The trial of relay ${candidate?.version} could not be recorded: ${messageOf(error)}.`)
    }
    const usableProgram = [active, previous].find((program) => program && this.#isIntact(program))
    // If the program is not newer, the program of this process was installed later.
    return usableProgram && isNewer(usableProgram.version, relayVersion)
      ? { ...usableProgram, isTrial: false }
      : undefined
  }

  #startTrial(candidate: Candidate): boolean {
    const canStart = candidate.tries < maxTries && this.#isIntact(candidate)
    const reason = candidate.reason ?? 'it was tried three times, or its file is damaged'
    if (canStart) this.#change({ candidate: { ...candidate, tries: candidate.tries + 1 } })
    else this.#setCandidateState('rolledBack', () => ({ reason }))
    return canStart
  }

  #isIntact(program: Program): boolean {
    try {
      return isSigned(readFileSync(this.path(program)), program.signature)
    } catch {
      return false
    }
  }

  #setCandidateState(
    state: Candidate['state'],
    change: (candidate: Candidate) => Partial<Candidate> = () => ({}),
  ): void {
    const { candidate } = this.#read()
    if (candidate) this.#change({ candidate: { ...candidate, ...change(candidate), state } })
  }

  #change(change: StoredState): void {
    writeDurably(this.#stateFile, JSON.stringify({ ...this.#read(), ...change }))
  }

  #read(): StoredState {
    const { active, previous, candidate } = parseJsonObject(readIfPresent(this.#stateFile) ?? '') ?? {}
    return {
      active: isProgram(active) ? active : undefined,
      previous: isProgram(previous) ? previous : undefined,
      candidate: candidateOf(candidate),
    }
  }

  // Removes all files except the state, the active program and the previous one.
  #clear(): void {
    const { active, previous } = this.#read()
    const keptPaths = [
      this.#stateFile,
      ...[active, previous].flatMap((program) => (program ? [this.path(program)] : [])),
    ]
    for (const path of readdirSync(this.#folder).map((name) => join(this.#folder, name)))
      if (!keptPaths.includes(path)) rmSync(path, { force: true })
  }
}

/** Whether the release key of this relay has signed the file. */
export function isSigned(file: Buffer, signature: string): boolean {
  if (releaseKeyPem === undefined) return false
  const key = createPublicKey(releaseKeyPem)
  const hashAlgorithm = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  return verify(hashAlgorithm, file, key, Buffer.from(signature, 'base64'))
}

const programOf = ({ id, version, sha256, signature }: Program): Program => ({ id, version, sha256, signature })

function candidateOf(value: unknown): Candidate | undefined {
  if (!isProgram(value)) return undefined
  const { state: name, tries, reason }: Record<string, unknown> = { ...value }
  const state = states.find((each) => each === name)
  if (state === undefined || typeof tries !== 'number') return undefined
  return { ...programOf(value), state, tries, reason: typeof reason === 'string' ? reason : undefined }
}

function isProgram(value: unknown): value is Program {
  return (
    isJsonObject(value) && ['id', 'version', 'sha256', 'signature'].every((name) => typeof value[name] === 'string')
  )
}
