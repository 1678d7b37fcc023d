import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, openSync, closeSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Demo } from './folder.ts'
import { recordingCommand, stopRecorded } from './process-record.ts'

export const platformRecord = ({ folder }: Demo): string => join(folder, 'process')
const relayRecord = (relayDir: string): string => join(relayDir, 'process')

/** A relay ends within ten seconds of SIGTERM. */
const relayGraceMs = 12_000

export interface DemoRelay {
  clusterId: string
  /** Name of the relay and its node. */
  name: string
  /** Lines of the form `key=value` that the relay reports as facts. */
  facts: string
}

const stateDirOf = (demo: Demo, { clusterId }: DemoRelay): string => join(demo.relaysDir, clusterId, 'state')

export const isEnrolled = (demo: Demo, relay: DemoRelay): boolean =>
  existsSync(join(stateDirOf(demo, relay), 'identity.json'))

/** Stops relays of an earlier run that was killed. */
export async function stopLeftoverRelays({ relaysDir }: Demo): Promise<void> {
  const names = await readdir(relaysDir).catch(() => [])
  await Promise.all(names.map((name) => stopRecorded(relayRecord(join(relaysDir, name)), relayGraceMs)))
}

export class DemoRelays {
  readonly #demo: Demo
  readonly #server: string
  readonly #processes = new Set<ChildProcess>()

  constructor(demo: Demo, server: string) {
    this.#demo = demo
    this.#server = server
    process.once('exit', () => this.#signal('SIGTERM'))
  }

  start(relay: DemoRelay, enrollmentToken: string | undefined): void {
    const folder = join(this.#demo.relaysDir, relay.clusterId)
    const nodesFile = join(folder, 'nodes.json')
    const factsDir = join(folder, 'facts')
    mkdirSync(factsDir, { recursive: true, mode: 0o700 })
    writeFileSync(nodesFile, JSON.stringify({ nodes: [{ name: relay.name, executor: 'local' }] }))
    writeFileSync(join(factsDir, 'demo'), `#!/bin/sh\ncat <<'END'\n${relay.facts}\nEND\n`)
    chmodSync(join(factsDir, 'demo'), 0o700)
    const output = openSync(join(folder, 'relay.log'), 'w', 0o600)
    const program = [process.execPath, join(this.#demo.dataDir, 'assets/relay.mjs')]
    const options = ['--server', this.#server, '--state-dir', stateDirOf(this.#demo, relay), '--name', relay.name]
    const folders = ['--nodes', nodesFile, '--facts-dir', factsDir]
    const child = spawn('sh', ['-c', recordingCommand, relayRecord(folder), ...program, ...options, ...folders], {
      cwd: folder,
      stdio: ['ignore', output, output],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        ...(enrollmentToken !== undefined && { PLAT_ENROLLMENT_TOKEN: enrollmentToken }),
      },
    })
    closeSync(output)
    child.on('error', () => this.#processes.delete(child))
    child.once('exit', () => this.#processes.delete(child))
    this.#processes.add(child)
  }

  async stop(): Promise<void> {
    const exits = [...this.#processes].map((child) => once(child, 'exit'))
    const killTimer = setTimeout(() => this.#signal('SIGKILL'), relayGraceMs)
    this.#signal('SIGTERM')
    await Promise.all(exits)
    clearTimeout(killTimer)
  }

  #signal(signal: NodeJS.Signals): void {
    for (const child of this.#processes) child.kill(signal)
  }
}
