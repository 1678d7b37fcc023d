import type { Heartbeat } from '@platform/contract/relay'
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FactPrograms } from './fact-programs.ts'
import { mapLimit } from './map-limit.ts'
import type { RelayNode } from './node.ts'
import type { NodeWatch } from './node-watch.ts'
import { relayVersion } from './version.ts'

type FactsReport = NonNullable<Heartbeat['facts']>
type NodeFacts = Omit<FactsReport['nodes'][number], 'id'>

const intervalMs = 900_000
const maxConcurrentNodes = 16
const maxTextLength = 100
const memoryStepBytes = 64 * 1024 * 1024
// Free space is reported in steps of this share of the disk, so that small changes are not reported.
const freeShare = 1 / 20
const shells = ['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'fish', 'pwsh']

/** A shell script that prints the facts of a machine as `key=value` lines. */
const script = `LC_ALL=C; export LC_ALL
echo "os=$(uname -s | tr A-Z a-z)"; echo "kernel=$(uname -r)"; echo "arch=$(uname -m)"
if [ -r /etc/os-release ]; then (. /etc/os-release; echo "osVersion=$PRETTY_NAME")
else echo "osVersion=$(sw_vers -productVersion 2>/dev/null || uname -v)"; fi
echo "cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc)"
if [ -r /proc/meminfo ]; then while read -r key size rest; do [ "$key" = MemTotal: ] && echo "memoryKiB=$size"; done </proc/meminfo
else echo "memoryBytes=$(sysctl -n hw.memsize)"; fi
set -- $(df -Pk / | tail -n 1); echo "diskKiB=$2"; echo "freeKiB=$4"
for shell in ${shells.join(' ')}; do command -v "$shell" >/dev/null && echo "shell=$shell"; done; exit 0`

export type FactsDeps = {
  nodes: RelayNode[]
  watch: NodeWatch
  programs: FactPrograms
  onChange: () => void
}

/** Collects facts in the background, so that no heartbeat waits for them. */
export class Facts {
  readonly #deps: FactsDeps
  readonly #facts = new Map<string, NodeFacts>()
  #custom: Record<string, string> = {}
  #reportedHash: string | undefined

  constructor(deps: FactsDeps) {
    this.#deps = deps
  }

  /** The hash of the facts; undefined until facts have been collected. */
  get hash(): string | undefined {
    return this.#reportedHash
  }

  report(): FactsReport {
    // The order of the nodes is fixed, because the hash depends on it.
    const nodes = this.#deps.nodes.flatMap(({ id }) => {
      const facts = this.#facts.get(id)
      return facts === undefined ? [] : [{ id, ...facts }]
    })
    return { relayVersion, custom: this.#custom, nodes }
  }

  /** Collects facts now, every 15 minutes, and from each node that becomes reachable, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const onReturn = (id: string) => void this.#refresh([id])
    this.#deps.watch.onReturn(onReturn)
    while (!signal.aborted) {
      this.#custom = await this.#deps.programs.run(signal)
      await this.#refresh(this.#deps.watch.onlineIds())
      await sleep(intervalMs, undefined, { signal }).catch(() => {})
    }
  }

  async #refresh(ids: readonly string[]): Promise<void> {
    const nodes = this.#deps.nodes.filter(({ id }) => ids.includes(id))
    await mapLimit(maxConcurrentNodes, nodes, async ({ id, executor }) => {
      const text = await executor.probe(script)
      if (text !== '') this.#facts.set(id, factsIn(text, this.#facts.get(id)))
    })
    const hash = createHash('sha256').update(JSON.stringify(this.report())).digest('hex').slice(0, 16)
    if (hash === this.#reportedHash) return
    this.#reportedHash = hash
    this.#deps.onChange()
  }
}

/** Reads the output of the script. Facts that are missing or invalid are omitted. */
export function factsIn(output: string, previousFacts: NodeFacts | undefined): NodeFacts {
  const lines = output.split('\n').map((line): [string, string] => {
    const separatorIndex = line.indexOf('=')
    return [line.slice(0, separatorIndex), line.slice(separatorIndex + 1)]
  })
  const values = new Map(lines)
  const textFact = (key: 'os' | 'osVersion' | 'kernel' | 'arch') => {
    const value = oneLine(values.get(key) ?? '', maxTextLength)
    return value === '' ? {} : { [key]: value }
  }
  const numberFact = (key: string) => (/^\d{1,15}$/.test(values.get(key) ?? '') ? Number(values.get(key)) : undefined)
  const cpus = numberFact('cpus')
  const memoryBytes = numberFact('memoryBytes') ?? inBytes(numberFact('memoryKiB'))
  const diskBytes = inBytes(numberFact('diskKiB'))
  const freeBytes = inBytes(numberFact('freeKiB'))
  return {
    ...textFact('os'),
    ...textFact('osVersion'),
    ...textFact('kernel'),
    ...textFact('arch'),
    ...(cpus !== undefined && cpus > 0 && cpus < 100_000 && { cpus }),
    ...(memoryBytes !== undefined && { memoryBytes: Math.round(memoryBytes / memoryStepBytes) * memoryStepBytes }),
    ...(diskBytes !== undefined && { rootDiskBytes: diskBytes }),
    ...(diskBytes !== undefined &&
      freeBytes !== undefined && {
        rootDiskFreeBytes: steadyFreeBytes(freeBytes, diskBytes, previousFacts?.rootDiskFreeBytes),
      }),
    shells: shells.filter((shell) => lines.some(([key, value]) => key === 'shell' && value === shell)),
  }
}

const inBytes = (kib: number | undefined): number | undefined =>
  kib === undefined || kib > 2 ** 42 ? undefined : kib * 1024

// Keeps the previous value until the change reaches a step, so that small changes are not reported.
function steadyFreeBytes(freeBytes: number, diskBytes: number, previousBytes: number | undefined): number {
  const stepBytes = Math.max(1, Math.floor(diskBytes * freeShare))
  return previousBytes !== undefined && Math.abs(freeBytes - previousBytes) < stepBytes
    ? previousBytes
    : Math.round(freeBytes / stepBytes) * stepBytes
}

/** Replaces control characters and line separators by spaces, and trims and truncates the text to `maxLength`. */
export function oneLine(text: string, maxLength: number): string {
  return text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
    .trim()
    .slice(0, maxLength)
    .toWellFormed()
    .trim()
}
