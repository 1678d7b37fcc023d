import { Link } from '@tanstack/react-router'
import type { Schemas } from '../../api/client.ts'
import { resourceLink } from '../../lib/resource-link.ts'
import { Button } from '../../ui/button.tsx'
import { DescriptionList } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Time } from '../../ui/time.tsx'
import { useUserName } from '../users/use-user-name.ts'
import type { AuditFilter } from './audit-filters.tsx'
import styles from './audit.module.css'

type Entry = Schemas['AuditEntry']

interface EntryDialogProps {
  entry: Entry | undefined
  onClose: () => void
  /** Called when the user filters the trail by a value of this entry. */
  onFilter: (filter: AuditFilter) => void
}

export const EntryDialog = ({ entry, onClose, onFilter }: EntryDialogProps) => (
  <Dialog isOpen={entry !== undefined} onClose={onClose} title={entry?.action ?? 'Entry'} isWide>
    {entry !== undefined && <EntryView entry={entry} onFilter={onFilter} />}
  </Dialog>
)

const EntryView = ({ entry, onFilter }: Pick<EntryDialogProps, 'onFilter'> & { entry: Entry }) => (
  <div className={styles['stack']}>
    {entry.detail !== '' && <p className={styles['detail']}>{entry.detail}</p>}
    <DescriptionList
      items={[
        ['Time', <Time key="w" at={entry.at} isAbsolute />],
        ['Actor', <Actor key="a" actor={entry.actor} showsId />],
        ...(entry.actor.tokenId === undefined
          ? []
          : [['API token', <code key="t">{entry.actor.tokenId}</code>] as const]),
        ['Resource', <Resource key="r" id={entry.resource} />],
        ['IP address', entry.address ?? 'the platform'],
        ['Sequence number', entry.seq],
        ['Written by', entry.extra ? 'API caller (extra entry)' : 'the platform'],
      ]}
    />
    <CopyRow label="Trace id" text={entry.traceId} />
    <CopyRow label="Hash" text={entry.hash} />
    <div className={styles['buttons']}>
      <Button onClick={() => onFilter({ actor: entry.actor.id })}>Same actor</Button>
      <Button onClick={() => onFilter({ action: entry.action })}>Same action</Button>
      <Button onClick={() => onFilter({ resource: entry.resource })}>Same resource</Button>
    </div>
  </div>
)

const CopyRow = ({ label, text }: { label: string; text: string }) => (
  <div>
    <p className={styles['label']} aria-hidden>
      {label}
    </p>
    <CopyField label={label} text={text} />
  </div>
)

// The resource may have been removed; its page then shows that it does not exist.
function Resource({ id }: { id: string }) {
  const link = resourceLink(id)
  return link === undefined ? (
    <code>{id}</code>
  ) : (
    <Link {...link}>
      <code>{id}</code>
    </Link>
  )
}

/** The name of the actor if the user may see it, else the id; "the platform" for the system. */
export function Actor({ actor: { kind, id }, showsId = false }: { actor: Schemas['AuditActor']; showsId?: boolean }) {
  const name = useUserName(id)
  if (kind === 'system') return 'the platform'
  if (name === undefined) return <code>{id}</code>
  return showsId ? (
    <>
      {name} <code>{id}</code>
    </>
  ) : (
    <span title={id}>{name}</span>
  )
}
