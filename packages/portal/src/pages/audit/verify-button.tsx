import { ShieldCheck, ShieldX } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { Button, Spinner } from '../../ui/button.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import styles from './audit.module.css'

type Verification = Schemas['AuditVerification']

type Outcome =
  | { state: 'checking'; entries: number }
  | { state: 'done'; entries: number; last: Verification }
  | { state: 'failed'; error: unknown }

/** Has the platform verify the whole chain, page by page. */
export function VerifyButton() {
  const [outcome, setOutcome] = useState<Outcome>()
  const running = useRef<AbortController>(undefined)
  // Aborts when the user leaves the page.
  useEffect(() => () => running.current?.abort(), [])
  const verify = async () => {
    const { signal } = (running.current = new AbortController())
    const show = (next: Outcome) => !signal.aborted && setOutcome(next)
    show({ state: 'checking', entries: 0 })
    try {
      const done = await verifyAll(signal, (entries) => show({ state: 'checking', entries }))
      show({ state: 'done', ...done })
    } catch (error) {
      show({ state: 'failed', error })
    }
  }
  const close = () => {
    running.current?.abort()
    setOutcome(undefined)
  }
  return (
    <>
      <Button icon={ShieldCheck} onClick={() => void verify()}>
        Verify
      </Button>
      <Dialog isOpen={outcome !== undefined} onClose={close} title="Verify the audit trail">
        {outcome !== undefined && <OutcomeView outcome={outcome} onRetry={() => void verify()} />}
      </Dialog>
    </>
  )
}

/** Verifies page by page, up to the first broken entry. */
async function verifyAll(
  signal: AbortSignal,
  onProgress: (entries: number) => void,
): Promise<{ entries: number; last: Verification }> {
  let entries = 0
  let after = 0
  for (;;) {
    const last = await unwrap(api.GET('/api/v1/platform/audit/verify', { params: { query: { after } }, signal }))
    entries += last.entries
    if (!last.valid || last.next === undefined) return { entries, last }
    after = last.next
    onProgress(entries)
  }
}

function OutcomeView({ outcome, onRetry }: { outcome: Outcome; onRetry: () => void }) {
  if (outcome.state === 'failed') return <ErrorNote error={outcome.error} onRetry={onRetry} />
  return (
    <div className={styles['found']}>
      <p role="status" className={styles['verdict']}>
        {outcome.state === 'done' ? <Verdict {...outcome} /> : <Checking entries={outcome.entries} />}
      </p>
      {outcome.state === 'done' && <WhatNext last={outcome.last} />}
    </div>
  )
}

const counted = (entries: number): string => (entries === 1 ? '1 entry' : `${entries.toLocaleString()} entries`)

const Checking = ({ entries }: { entries: number }) => (
  <>
    <Spinner /> <span>Verifying … {counted(entries)} so far.</span>
  </>
)

function Verdict({ entries, last: { valid, firstBroken } }: { entries: number; last: Verification }) {
  const Icon = valid ? ShieldCheck : ShieldX
  return (
    <>
      <Icon size={18} aria-hidden className={valid ? styles['whole'] : styles['broken']} />
      <span>
        <strong>{valid ? 'The audit trail is intact.' : `The audit trail is broken at entry ${firstBroken}.`}</strong>{' '}
        {counted(entries)} checked.
      </span>
    </>
  )
}

const WhatNext = ({ last: { valid, headSeq, headHash } }: { last: Verification }) =>
  valid ? (
    <>
      <p>Store the hash of the newest entry elsewhere. It later proves that earlier entries are unchanged.</p>
      <CopyField label={`Hash of entry ${headSeq}`} text={headHash} />
    </>
  ) : (
    <p>The audit data was modified outside the platform. Export it and compare it with a backup.</p>
  )
