import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ControlChannel } from './channel.ts'
import { HeartbeatLoop } from './heartbeat.ts'
import { Client } from './client.ts'
import type { ServerClock } from './clock.ts'
import { Completions } from './completions.ts'
import { WorkerPool } from './worker-pool.ts'
import { FatalError } from './exit-codes.ts'
import type { JobDeps } from './job-deps.ts'
import { localExecutor } from './executor/local.ts'
import { clearWorkFolder, ensureWorkFolder } from './executor/work-folder.ts'
import { relayUser, type ScriptUser } from './executor/user.ts'
import { FactPrograms } from './fact-programs.ts'
import { Facts } from './facts.ts'
import { type Identity, keyFor } from './identity.ts'
import { Journal } from './journal.ts'
import { messageOf, warn } from './log.ts'
import { ModeFile } from './mode.ts'
import { connectNodes } from './node.ts'
import { NodeWatch } from './node-watch.ts'
import type { Options } from './options.ts'
import { Spool } from './spool.ts'
import { StatementKeys } from './statement-keys.ts'
import { Storage } from './storage.ts'
import { Updater } from './update/updater.ts'

// The first heartbeat waits at most this long for the first check of the nodes. It reports unchecked nodes as Offline.
const firstCheckLimitMs = 20_000
// This limit includes the time that stopped scripts have to clean up.
const reportLimitMs = 7500
const goodbyeLimitMs = 2000
// Unlike in `/tmp`, the users of scripts cannot create folders here.
const protectedFolder = '/var/lib'

export type RelaySettings = Pick<Options, 'stateFolder' | 'slots' | 'workFolder' | 'runAs' | 'factsFolder'> & {
  clock: ServerClock
}

/** An enrolled relay. */
export class Relay {
  readonly #workFolder: string
  readonly #user: ScriptUser
  readonly #client: Client
  readonly #journal: Journal
  readonly #watch: NodeWatch
  readonly #facts: Facts
  readonly #workers: WorkerPool
  readonly #channel: ControlChannel
  readonly #mode: ModeFile
  readonly #heartbeats: HeartbeatLoop
  readonly #reportController = new AbortController()
  #isRevoked = false
  #isReplaced = false

  constructor(identity: Identity, settings: RelaySettings) {
    const { stateFolder, slots, clock, workFolder, runAs, factsFolder } = settings
    const { server, relayId, clusterId, heartbeatIntervalSeconds: intervalSeconds } = identity
    const privateKey = keyFor(stateFolder, identity.tokenId)
    this.#user = runAs ?? relayUser()
    this.#workFolder = workFolderOf(identity, { stateFolder, workFolder, runAs })
    this.#client = new Client({ server, relayId, privateKey }, clock, () => this.#revoke())
    this.#journal = new Journal(join(stateFolder, 'journal.jsonl'))
    const nodes = connectNodes(identity.nodes, this.#workFolder, this.#user)
    const statementKeys = new StatementKeys(stateFolder, identity)
    const deps: JobDeps = {
      client: this.#client,
      completions: new Completions(this.#client, this.#reportController.signal),
      clock,
      journal: this.#journal,
      spool: new Spool(stateFolder),
      clusterId,
      statementKeys,
      nodes,
      server: { acceptsLastOutput: false },
      signal: this.#reportController.signal,
    }
    const storage = new Storage([stateFolder, this.#workFolder], () => ensureWorkFolder(this.#workFolder, this.#user))
    this.#watch = new NodeWatch(nodes)
    this.#facts = new Facts({
      nodes,
      watch: this.#watch,
      programs: new FactPrograms(factsFolder, localExecutor(this.#workFolder, this.#user)),
      onChange: () => this.#heartbeats.onFactsChange(),
    })
    this.#workers = new WorkerPool({
      deps,
      slots,
      storage,
      onSlotFreed: () => this.#heartbeats.onSlotFreed(),
      onJobDone: () => this.#heartbeats.onJobDone(),
    })
    this.#channel = new ControlChannel({
      server,
      passwordFor: (clientId) => this.#client.channelPassword(clientId),
      onWake: () => this.#heartbeats.onWakeUp(),
      onChange: () => this.#onChannelChange(),
      onProblem: () => this.#mode.write(this.#channel.state),
    })
    this.#mode = new ModeFile(stateFolder)
    this.#heartbeats = new HeartbeatLoop({
      ...deps,
      channel: this.#channel,
      workers: this.#workers,
      watch: this.#watch,
      intervalSeconds,
      scriptsIsolated: isolatesScripts(identity, runAs),
      facts: this.#facts,
      updater: new Updater({
        stateFolder,
        server,
        isIdle: () => this.#workers.isIdle,
        drain: () => this.#workers.drain(),
        swap: () => this.#replace(),
      }),
    })
  }

  /**
   * Runs until the signal aborts, the server revokes the relay or another program has to replace this one. Returns
   * whether this program has to be replaced. Throws `FatalError` after a revocation.
   */
  async run(signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => this.#heartbeats.stop())
    this.#mode.write(this.#channel.state)
    await this.#recover()
    // The relay exits without waiting for this check, because an unresponsive node must not delay the exit.
    const firstCheck = this.#watch.check()
    void firstCheck.then(() => this.#watch.run(this.#reportController.signal))
    void firstCheck.then(() => this.#facts.run(this.#reportController.signal))
    await Promise.race([firstCheck, sleep(firstCheckLimitMs, undefined, { ref: false }), once(signal, 'abort')])
    await this.#heartbeats.run()
    const isReplaced = this.#isReplaced && !signal.aborted
    await (this.#isRevoked || isReplaced ? this.#abandon() : this.#shutDown(String(signal.reason)))
    this.#journal.close()
    if (this.#isRevoked) {
      throw new FatalError('revoked', 'The server no longer accepts this relay. Issue a new token to enroll it again.')
    }
    return isReplaced
  }

  async #recover(): Promise<void> {
    for (const entry of this.#journal.unfinishedEntries()) this.#workers.resume(entry)
    ensureWorkFolder(this.#workFolder, this.#user)
    await clearWorkFolder(this.#workFolder)
  }

  #onChannelChange(): void {
    this.#mode.write(this.#channel.state)
    this.#heartbeats.onChannelChange()
  }

  // The next program reports to the platform, so this program sends no goodbye.
  #replace(): void {
    this.#isReplaced = true
    this.#heartbeats.stop()
  }

  #revoke(): void {
    this.#isRevoked = true
    this.#heartbeats.stop()
  }

  async #abandon(): Promise<void> {
    this.#channel.close()
    this.#reportController.abort()
    await this.#workers.close()
  }

  async #shutDown(reason: string): Promise<void> {
    const timer = setTimeout(() => this.#reportController.abort(), reportLimitMs)
    await this.#workers.close()
    clearTimeout(timer)
    this.#reportController.abort()
    try {
      const body = { reason }
      await this.#client.attempt({
        path: '/goodbye',
        body,
        timeoutMs: goodbyeLimitMs,
        signal: new AbortController().signal,
        isSuccess: ({ status }) => status === 204,
      })
    } catch (error) {
      warn(`The server was not notified that this relay is stopping: ${messageOf(error)}`)
    }
    this.#channel.close()
  }
}

/** Whether no script can read the key of the relay: scripts run as another user or on other machines. */
export function isolatesScripts({ nodes }: Identity, runAs: ScriptUser | undefined): boolean {
  return runAs !== undefined || nodes.every(({ config }) => config.executor !== 'local')
}

// Another user cannot enter the state folder, and relays may share the folder of `--work-dir`.
function workFolderOf(
  { relayId }: Identity,
  { stateFolder, workFolder, runAs }: Pick<Options, 'stateFolder' | 'workFolder' | 'runAs'>,
): string {
  const parent = workFolder ?? (runAs && protectedFolder)
  return parent ? join(parent, `platform-relay-${relayId}`) : join(stateFolder, 'work')
}
