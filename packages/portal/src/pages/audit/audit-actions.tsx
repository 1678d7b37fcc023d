import { Download, Plus, ShieldCheck, ShieldX } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { fetchInSession } from '../../api/session.ts'
import { Button, Spinner } from '../../ui/button.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Menu } from '../../ui/menu.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { showErrorToast, showToast } from '../../ui/toast.tsx'
import styles from './audit.module.css'

type Verification = Schemas['AuditVerification']

type Outcome =
  | { state: 'checking'; entries: number }
  | { state: 'done'; entries: number; last: Verification }
  | { state: 'failed'; error: unknown }

/** Verifies the hash chain of the whole audit trail in several requests. */
export function VerifyButton() {
  const [outcome, setOutcome] = useState<Outcome>()
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const verify = async () => {
    const { signal } = (controller.current = new AbortController())
    const show = (nextOutcome: Outcome) => !signal.aborted && setOutcome(nextOutcome)
    show({ state: 'checking', entries: 0 })
    try {
      const result = await verifyAll(signal, (entries) => show({ state: 'checking', entries }))
      show({ state: 'done', ...result })
    } catch (error) {
      show({ state: 'failed', error })
    }
  }
  const close = () => {
    controller.current?.abort()
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

// Verifies the trail in parts, and stops after the first part with a broken entry.
async function verifyAll(
  signal: AbortSignal,
  onProgress: (entryCount: number) => void,
): Promise<{ entries: number; last: Verification }> {
  let entryCount = 0
  let after = 0
  for (;;) {
    const last = await unwrap(api.GET('/api/v1/platform/audit/verify', { params: { query: { after } }, signal }))
    entryCount += last.entries
    if (!last.valid || last.next === undefined) return { entries: entryCount, last }
    after = last.next
    onProgress(entryCount)
  }
}

function OutcomeView({ outcome, onRetry }: { outcome: Outcome; onRetry: () => void }) {
  if (outcome.state === 'failed') return <ErrorNote error={outcome.error} onRetry={onRetry} />
  return (
    <div className={styles['stack']}>
      <p role="status" className={styles['verdict']}>
        {outcome.state === 'done' ? <Verdict {...outcome} /> : <CheckProgress entries={outcome.entries} />}
      </p>
      {outcome.state === 'done' && <NextStep last={outcome.last} />}
    </div>
  )
}

const entriesText = (entries: number): string => (entries === 1 ? '1 entry' : `${entries.toLocaleString('en')} entries`)

const CheckProgress = ({ entries }: { entries: number }) => (
  <>
    <Spinner /> <span>Verifying … {entriesText(entries)} so far.</span>
  </>
)

function Verdict({ entries, last: { valid, firstBroken } }: { entries: number; last: Verification }) {
  const Icon = valid ? ShieldCheck : ShieldX
  return (
    <>
      <Icon size={18} aria-hidden className={valid ? styles['whole'] : styles['broken']} />
      <span>
        <strong>{valid ? 'The audit trail is intact.' : `The audit trail is broken at entry ${firstBroken}.`}</strong>{' '}
        {entriesText(entries)} checked.
      </span>
    </>
  )
}

const NextStep = ({ last: { valid, headSeq, headHash } }: { last: Verification }) =>
  valid ? (
    <>
      <p>
        Store the hash of the newest entry, or a signed checkpoint (Export), elsewhere. It later proves that earlier
        entries are unchanged and complete.
      </p>
      <CopyField label={`Hash of entry ${headSeq}`} text={headHash} />
    </>
  ) : (
    <p>The audit data was modified outside the platform. Export it and compare it with a backup.</p>
  )

export function AddEntry() {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  return (
    <>
      <Button icon={Plus} onClick={() => setIsOpen(true)}>
        Add entry
      </Button>
      <Dialog
        isOpen={isOpen}
        onClose={close}
        title="Add an entry"
        description="For events outside the platform, such as an approval. Entries cannot be changed or removed."
      >
        <Form
          submitLabel="Add entry"
          actions={<CancelButton />}
          onSubmit={async ({ action = '', resource = '', detail = '' }) => {
            await expectNoBody(api.POST('/api/v1/platform/audit', { body: { action, resource, detail } }))
            await queries.invalidateQueries({ queryKey: ['audit'] })
            showToast('Entry added. It appears shortly.')
            close()
          }}
        >
          <TextField name="action" label="Action" placeholder="change.approved" required maxLength={100} />
          <TextField name="resource" label="Resource" placeholder="clus_…" required maxLength={200} />
          <TextArea name="detail" label="Detail" rows={4} maxLength={2000} isOptional />
        </Form>
      </Dialog>
    </>
  )
}

const formats = [
  { name: 'ndjson', label: 'As NDJSON', type: 'application/x-ndjson' },
  { name: 'csv', label: 'As CSV', type: 'text/csv' },
] as const
type Format = (typeof formats)[number]

const saveTrail = async ({ name, type }: Format): Promise<void> => {
  saveFile(`audit-trail.${name}`, await fetchParts(name), type)
  showToast('Audit trail exported')
}

const saveCheckpoint = async (): Promise<void> => {
  const { checkpoint, seq } = await unwrap(api.GET('/api/v1/platform/audit/checkpoint'))
  saveFile(`audit-checkpoint-${seq}.jws`, [`${checkpoint}\n`], 'application/jose')
}

/** Exports the whole trail without filters, because a hash chain with gaps cannot be verified. */
export function ExportMenu() {
  const [isBusy, setIsBusy] = useState(false)
  const run = async (save: () => Promise<void>) => {
    setIsBusy(true)
    try {
      await save()
    } catch (error) {
      showErrorToast('Failed to export the audit trail', error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Menu
      trigger={
        <Button icon={Download} isBusy={isBusy}>
          Export
        </Button>
      }
      heading="The whole trail, without filters"
      actions={[
        ...formats.map((format) => ({ label: format.label, save: () => saveTrail(format) })),
        { label: 'Signed checkpoint', save: saveCheckpoint },
      ].map(({ label, save }) => ({ label, onSelect: () => void run(save), isDisabled: isBusy }))}
    />
  )
}

// The `Link` header of each part except the last refers to the next part.
async function fetchParts(format: Format['name']): Promise<string[]> {
  const parts: string[] = []
  let nextPath: string | undefined = `/api/v1/platform/audit/export?format=${format}`
  while (nextPath !== undefined) {
    const response = await fetchPart(nextPath)
    parts.push(await response.text())
    nextPath = nextOf(response.headers.get('link') ?? '')
  }
  return parts
}

async function fetchPart(path: string): Promise<Response> {
  const response = await fetchInSession(new Request(new URL(path, location.origin))).catch((cause: unknown) => {
    throw ApiError.unreachable(cause)
  })
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})), response.headers)
  return response
}

// Only paths of the export are followed.
const nextOf = (link: string): string | undefined =>
  /<(?:https?:\/\/[^/>]+)?(\/api\/v1\/platform\/audit\/export\?[^>]*)>;\s*rel="next"/.exec(link)?.[1]
