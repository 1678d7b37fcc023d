import { useQuery } from '@tanstack/react-query'
import { ArrowUp, CircleCheck, ExternalLink, RefreshCw, Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useSummary } from '../../api/account.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Loading } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { secureLink } from './secure-link.ts'
import { UpdateDialog, type UpdateRequest } from './update-dialog.tsx'
import styles from './updates.module.css'
import { checkQuery, type UpdateCheck } from './use-updates.ts'

/** Older results are marked as old. */
const freshMs = 120_000

type Known = Omit<UpdateCheck, 'refused' | 'checkedAt'> & Partial<Pick<UpdateCheck, 'refused' | 'checkedAt'>>

/** Current and available versions with their actions, disabled during an update. */
export function ReleaseCard({ isBusy, onBegun }: { isBusy: boolean; onBegun: (jobId: string) => void }) {
  const check = useQuery(checkQuery)
  const summary = useSummary()
  const [wish, setWish] = useState<UpdateRequest>()
  // If releases cannot be read, the summary has the last result.
  const known: Known | undefined = check.data ?? summary.data?.update
  const isOld =
    known?.checkedAt !== undefined && check.isSuccess && check.dataUpdatedAt - Date.parse(known.checkedAt) > freshMs
  const busy = isBusy || known?.jobId !== undefined
  return (
    <Card
      title="Release"
      actions={
        <Button icon={RefreshCw} isBusy={check.isFetching} onClick={() => void check.refetch()}>
          Check now
        </Button>
      }
    >
      {check.error !== null && <ErrorNote error={check.error} onRetry={() => void check.refetch()} />}
      {isOld && <p className={styles['note']}>Releases are unavailable. Showing the last result.</p>}
      {known === undefined ? check.error === null && <Loading what="the releases" /> : <Versions known={known} />}
      {known && (
        <div className={styles['actions']}>
          {known.updateAvailable && (
            <Button
              look="primary"
              icon={ArrowUp}
              disabled={busy}
              onClick={() => setWish({ action: 'apply', from: known.currentVersion, to: known.latestVersion })}
            >
              Update to {known.latestVersion}
            </Button>
          )}
          {known.previousVersion !== undefined && (
            <Button
              icon={Undo2}
              disabled={busy}
              onClick={() =>
                setWish({ action: 'rollback', from: known.currentVersion, to: known.previousVersion ?? '' })
              }
            >
              Roll back to {known.previousVersion}
            </Button>
          )}
        </div>
      )}
      {known?.previousVersion === undefined && known !== undefined && (
        <p className={styles['quiet']}>No previous version: this version was deployed, not applied.</p>
      )}
      {wish && <UpdateDialog wish={wish} onClose={() => setWish(undefined)} onBegun={onBegun} />}
    </Card>
  )
}

const Versions = ({ known }: { known: Known }) => (
  <>
    <DescriptionList
      items={[
        ['Current version', known.currentVersion],
        [
          'Newest version',
          <span key="latest" className={styles['actions']}>
            {known.latestVersion}{' '}
            {known.updateAvailable ? (
              <Badge tone="busy" icon={ArrowUp}>
                Update available
              </Badge>
            ) : (
              <Badge tone="good" icon={CircleCheck}>
                Up to date
              </Badge>
            )}
          </span>,
        ],
        ['Checked', known.checkedAt === undefined ? 'Not yet' : <Time key="checked" at={known.checkedAt} />],
        ...(known.releaseNotesUrl === undefined
          ? []
          : ([['Release notes', <Notes key="notes" url={known.releaseNotesUrl} />]] as const)),
      ]}
    />
    {known.refused !== undefined && known.refused.length > 0 && (
      <section aria-label="Incompatible releases">
        <h3>Newer releases that cannot be applied</h3>
        <ul className={styles['refused']}>
          {known.refused.map(({ version, reason }) => (
            <li key={version}>
              <strong>{version}</strong> <span className={styles['quiet']}>{reason}</span>
            </li>
          ))}
        </ul>
      </section>
    )}
  </>
)

/** The release's author chose the URL: only https becomes a link. */
function Notes({ url }: { url: string }) {
  const href = secureLink(url)
  if (href === undefined) return <span>{url}</span>
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      Release notes <ExternalLink size={14} aria-hidden />
      <span className="visually-hidden">(opens another tab)</span>
    </a>
  )
}
