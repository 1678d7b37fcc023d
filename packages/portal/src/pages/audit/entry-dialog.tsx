import { Link } from '@tanstack/react-router'
import type { Schemas } from '../../api/client.ts'
import { addressOf } from '../../lib/address-of.ts'
import { Button } from '../../ui/button.tsx'
import { DescriptionList } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Time } from '../../ui/time.tsx'
import { Actor } from './actor.tsx'
import type { AuditFilter } from './audit-filters.tsx'
import styles from './audit.module.css'

type Entry = Schemas['AuditEntry']

interface EntryDialogProps {
  entry: Entry | undefined
  onClose: () => void
  /** Filters by a value of this entry. */
  onNarrow: (filter: AuditFilter) => void
}

export const EntryDialog = ({ entry, onClose, onNarrow }: EntryDialogProps) => (
  <Dialog isOpen={entry !== undefined} onClose={onClose} title={entry?.action ?? 'Entry'} isWide>
    {entry !== undefined && <EntryView entry={entry} onNarrow={onNarrow} />}
  </Dialog>
)

const EntryView = ({ entry, onNarrow }: Pick<EntryDialogProps, 'onNarrow'> & { entry: Entry }) => (
  <div className={styles['found']}>
    {entry.detail !== '' && <p className={styles['detail']}>{entry.detail}</p>}
    <DescriptionList
      items={[
        ['Time', <Time key="w" at={entry.at} isAbsolute />],
        ['Actor', <Actor key="a" actor={entry.actor} isWhole />],
        ...(entry.actor.tokenId === undefined
          ? []
          : [['API token', <code key="t">{entry.actor.tokenId}</code>] as const]),
        ['Resource', <Resource key="r" id={entry.resource} />],
        ['IP address', entry.address ?? 'the platform'],
        ['Sequence number', entry.seq],
        ['Written by', entry.extra ? 'API caller (extra entry)' : 'the platform'],
      ]}
    />
    <Copied label="Trace id" text={entry.traceId} />
    <Copied label="Hash" text={entry.hash} />
    <div className={styles['buttons']}>
      <Button onClick={() => onNarrow({ actor: entry.actor.id })}>Same actor</Button>
      <Button onClick={() => onNarrow({ action: entry.action })}>Same action</Button>
      <Button onClick={() => onNarrow({ resource: entry.resource })}>Same resource</Button>
    </div>
  </div>
)

const Copied = ({ label, text }: { label: string; text: string }) => (
  <div>
    <p className={styles['label']} aria-hidden>
      {label}
    </p>
    <CopyField label={label} text={text} />
  </div>
)

/** Links to the resource, which may have been removed. */
function Resource({ id }: { id: string }) {
  const address = addressOf(id)
  return address === undefined ? (
    <code>{id}</code>
  ) : (
    <Link {...address}>
      <code>{id}</code>
    </Link>
  )
}
