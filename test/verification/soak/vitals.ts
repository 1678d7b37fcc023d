import { readdir, readFile } from 'node:fs/promises'
import { readRuntimeFile } from '../../../packages/local/src/runtime-file.ts'
import type { PlatformProcess } from '../../support/platform.ts'
import type { Heaps } from './collections.ts'

/** How a platform's process is at one moment. */
export interface Vitals {
  /** Open files and sockets. */
  descriptors: number
  heldRequests: number
  /** How late the event loop is, at worst of a hundred. */
  loopLagMs: number
}

/** What a platform's process keeps in memory once all garbage is collected. */
export interface Memory {
  /** In use on the heaps of all threads. */
  heapMB: number
  /** Resident, without pages of files: the system takes those away when it needs their place. */
  residentMB: number
}

/** Reads what a process tells of itself, and what the system tells of it. */
export async function vitalsOf({ url, dataDir }: PlatformProcess): Promise<Vitals> {
  const { processId } = await readRuntimeFile(dataDir)
  const [text, open] = [await (await fetch(`${url}/metrics`)).text(), await readdir(`/proc/${processId}/fd`)]
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  return {
    descriptors: open.length,
    heldRequests: value('platform_http_long_polls'),
    loopLagMs: 1000 * value('nodejs_eventloop_lag_p99_seconds'),
  }
}

/** Has the garbage collected, and looks at what is left. */
export async function memoryOf({ dataDir }: PlatformProcess, heaps: Heaps): Promise<Memory> {
  const { processId } = await readRuntimeFile(dataDir)
  const heapMB = await heaps.collect()
  const status = await readFile(`/proc/${processId}/status`, 'utf8')
  return { heapMB, residentMB: Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024 }
}

/**
 * Growth a minute, from the first third of what was seen to the last, by the median of each: a look into the midst of a
 * compaction does not tilt it, and a step that stays counts whenever it comes.
 */
export function growthOf(points: readonly (readonly [minutes: number, value: number])[]): number {
  const third = Math.ceil(points.length / 3)
  const [first, last] = [points.slice(0, third), points.slice(-third)]
  const rise = ([0, 1] as const).map((axis) => medianOf(last, axis) - medianOf(first, axis))
  const [minutes = 0, value = 0] = rise
  return value / minutes
}

const medianOf = (points: readonly (readonly [number, number])[], axis: 0 | 1): number =>
  points.map((point) => point[axis]).toSorted((one, other) => one - other)[Math.floor(points.length / 2)] ?? 0
