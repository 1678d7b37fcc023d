import { appendFileSync } from 'node:fs'
import { type Entry } from './checkpoint.ts'

/** What the engine tells the deployer while it works: JSON lines, which it turns into what people read. */

export type Operation = 'same' | 'create' | 'update' | 'replace' | 'delete'

/** What a run did, for whoever looks at it afterwards. */
export interface Events {
  begun: (operation: Operation, entry: Entry, old: Entry | undefined) => void
  done: (operation: Operation, entry: Entry, old: Entry | undefined) => void
  failed: (urn: string, message: string) => void
  /** How many resources were touched otherwise than `same`, by operation and type, as in `create aws:sqs/queue:Queue`. */
  end: () => Record<string, number>
}

/** Writes events to a file, as `preview` or for real. */
export function eventsTo(file: string, planning: boolean): Events {
  const counts: Record<string, number> = {}
  const resourceChanges: Record<string, number> = {}
  let sequence = 0
  const write = (event: Record<string, unknown>): void =>
    appendFileSync(
      file,
      `${JSON.stringify({ sequence: sequence++, timestamp: Math.floor(Date.now() / 1000), ...event })}\n`,
    )
  const metadata = (op: Operation, entry: Entry, old: Entry | undefined) => ({
    planning,
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
    begun: (operation, entry, old) => write({ resourcePreEvent: metadata(operation, entry, old) }),
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
