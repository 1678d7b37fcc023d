import { appendFileSync } from 'node:fs'
import type { Entry } from './checkpoint.ts'

export type Operation = 'same' | 'create' | 'update' | 'replace' | 'delete'

export interface Events {
  started: (operation: Operation, entry: Entry, old: Entry | undefined) => void
  done: (operation: Operation, entry: Entry, old: Entry | undefined) => void
  failed: (urn: string, message: string) => void
  end: () => Record<string, number>
}

export function eventsTo(file: string, isPreview: boolean): Events {
  const counts: Record<string, number> = {}
  const resourceChanges: Record<string, number> = {}
  let sequence = 0
  const write = (event: Record<string, unknown>): void =>
    appendFileSync(
      file,
      `${JSON.stringify({ sequence: sequence++, timestamp: Math.floor(Date.now() / 1000), ...event })}\n`,
    )
  const metadata = (op: Operation, entry: Entry, old: Entry | undefined) => ({
    planning: isPreview,
    metadata: {
      op,
      urn: entry.urn,
      type: entry.type,
      new: entry,
      old: old ?? null,
      detailedDiff: null,
      logical: true,
      provider: '',
    },
  })
  return {
    started: (operation, entry, old) => write({ resourcePreEvent: metadata(operation, entry, old) }),
    done: (operation, entry, old) => {
      const kind = `${operation} ${entry.type}`
      resourceChanges[operation] = (resourceChanges[operation] ?? 0) + 1
      if (operation !== 'same') counts[kind] = (counts[kind] ?? 0) + 1
      write({ resOutputsEvent: metadata(operation, entry, old) })
    },
    failed: (urn, message) =>
      write({ diagnosticEvent: { urn, message, severity: 'error', color: 'never', prefix: '' } }),
    end: () => {
      write({ summaryEvent: { maybeCorrupt: false, durationSeconds: 1, resourceChanges, policyPacks: {} } })
      return counts
    },
  }
}
