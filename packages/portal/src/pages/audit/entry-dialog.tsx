import { Link } from '@tanstack/react-router'
import type { Schemas } from '../../api/client.ts'
import { addressOf } from '../../app/address-of.ts'
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
  /** Shows the entries alone that have something in common with this one. */
  onNarrow: (filter: AuditFilter) => void
}

/** One entry, whole. */
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
        ['When', <Time key="w" at={entry.at} isAbsolute />],
        ['Who', <Actor key="a" actor={entry.actor} isWhole />],
        ...(entry.actor.tokenId === undefined
          ? []
          : [['API token', <code key="t">{entry.actor.tokenId}</code>] as const]),
        ['What', <Resource key="r" id={entry.resource} />],
        ['From the address', entry.address ?? 'the platform itself'],
        ['Number in the chain', entry.seq],
        ['Written by', entry.extra ? 'a caller, as an extra entry' : 'the platform'],
      ]}
    />
    <Copied label="Trace id" text={entry.traceId} />
    <Copied label="Hash" text={entry.hash} />
    <div className={styles['buttons']}>
      <Button onClick={() => onNarrow({ actor: entry.actor.id })}>Only by the same</Button>
      <Button onClick={() => onNarrow({ action: entry.action })}>Only this action</Button>
      <Button onClick={() => onNarrow({ resource: entry.resource })}>Only about the same</Button>
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

/** What was changed leads to its page, if it has one. It may be gone by now. */
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
