import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, parseJsonObject } from './json.ts'
import { isAlive, stampOf } from './process-group.ts'

/**
 * The state of a control channel. `url` is absent if the relay uses no channel. `problem` is the reason of a failure
 * since the channel was last open, if any.
 */
export type ChannelState = { isOpen: boolean; url?: string | undefined; problem?: string | undefined }

/** The last state that a relay has stored, and whether that relay is running. */
export type Mode = ChannelState & { isRunning: boolean }

/** Stores the state of the control channel for `--check` and `status`, which run in other processes. */
export class ModeFile {
  readonly #path: string

  constructor(stateFolder: string) {
    this.#path = join(stateFolder, 'mode.json')
  }

  write(state: ChannelState): void {
    const relay = { pid: process.pid, stamp: stampOf(process.pid) }
    try {
      writeFileSync(this.#path, JSON.stringify({ relay, ...state }), { mode: 0o600 })
    } catch {
      // The relay works without this file.
    }
  }

  read(): Mode {
    const { relay, isOpen, url, problem } = parseJsonObject(this.#text()) ?? {}
    const { pid, stamp } = isJsonObject(relay) ? relay : {}
    return {
      isRunning: typeof pid === 'number' && typeof stamp === 'string' && isAlive({ pid, stamp }),
      isOpen: isOpen === true,
      url: typeof url === 'string' && URL.canParse(url) ? url : undefined,
      problem: typeof problem === 'string' ? problem : undefined,
    }
  }

  #text(): string {
    try {
      return readFileSync(this.#path, 'utf8')
    } catch {
      return ''
    }
  }
}
