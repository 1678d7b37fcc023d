import { join } from 'node:path'
import { Peer } from './peer.ts'
import { RelayProcess, Workplace } from './relay-process.ts'

export type StageSettings = {
  args?: string[]
  environment?: Record<string, string>
  /** Readies the platform before the relay starts. */
  prepare?: (peer: Peer) => void
}

/** A platform and a relay that is about to enroll with it. */
export class Stage {
  readonly workplace: Workplace
  readonly peer: Peer
  readonly token: string
  /** The relay that was started last. */
  relay: RelayProcess
  readonly #started: RelayProcess[] = []

  private constructor(workplace: Workplace, peer: Peer, settings: StageSettings) {
    this.workplace = workplace
    this.peer = peer
    this.token = peer.issueToken()
    this.relay = this.startRelay(settings)
  }

  static async set(settings: StageSettings = {}): Promise<Stage> {
    const peer = await Peer.start()
    settings.prepare?.(peer)
    return new Stage(await Workplace.make(), peer, settings)
  }

  /** Starts a relay on the state folder of this stage. */
  startRelay({ args = [], environment = {} }: StageSettings = {}): RelayProcess {
    this.relay = new RelayProcess({
      bundle: this.workplace.bundle,
      args: ['--server', this.peer.url, '--state-dir', this.workplace.stateFolder, ...args],
      environment: { PLAT_ENROLLMENT_TOKEN: this.token, ...environment },
      folder: this.workplace.folder,
    })
    this.#started.push(this.relay)
    return this.relay
  }

  /** The path of a file for a script and its test to meet at. */
  file(name: string): string {
    return join(this.workplace.folder, name)
  }

  async clear(): Promise<void> {
    await Promise.all(this.#started.map((relay) => relay.end('SIGKILL')))
    await this.peer.close()
    await this.workplace.remove()
  }
}
