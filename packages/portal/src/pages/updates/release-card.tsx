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
import { UpdateDialog, type UpdateRequest } from './update-dialog.tsx'
import styles from './updates.module.css'
import { checkQuery, type UpdateCheck } from './use-updates.ts'

// Older results are marked as outdated.
const freshMs = 120_000

type ReleaseState = Omit<UpdateCheck, 'refused' | 'checkedAt'> & Partial<Pick<UpdateCheck, 'refused' | 'checkedAt'>>

/** The current and the available version with their actions, which are disabled during an update. */
export function ReleaseCard({ isBusy, onStarted }: { isBusy: boolean; onStarted: (jobId: string) => void }) {
  const check = useQuery(checkQuery)
  const summary = useSummary()
  const [request, setRequest] = useState<UpdateRequest>()
  // If the releases cannot be read, the summary has the last result.
  const release: ReleaseState | undefined = check.data ?? summary.data?.update
  const isStale =
    release?.checkedAt !== undefined && check.isSuccess && check.dataUpdatedAt - Date.parse(release.checkedAt) > freshMs
  const isUpdating = isBusy || release?.jobId !== undefined
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
      {isStale && <p className={styles['note']}>Releases are unavailable. Showing the last result.</p>}
      {release === undefined ? check.error === null && <Loading what="the releases" /> : <Versions release={release} />}
      {release && (
        <div className={styles['actions']}>
          {release.updateAvailable && (
            <Button
              variant="primary"
              icon={ArrowUp}
              disabled={isUpdating}
              onClick={() => setRequest({ action: 'apply', from: release.currentVersion, to: release.latestVersion })}
            >
              Update to {release.latestVersion}
            </Button>
          )}
          {release.previousVersion !== undefined && (
            <Button
              icon={Undo2}
              disabled={isUpdating}
              onClick={() =>
                setRequest({ action: 'rollback', from: release.currentVersion, to: release.previousVersion ?? '' })
              }
            >
              Roll back to {release.previousVersion}
            </Button>
          )}
        </div>
      )}
      {release?.previousVersion === undefined && release !== undefined && (
        <p className={styles['quiet']}>No previous version: this version was deployed, not applied.</p>
      )}
      {request && <UpdateDialog request={request} onClose={() => setRequest(undefined)} onStarted={onStarted} />}
    </Card>
  )
}

const Versions = ({ release }: { release: ReleaseState }) => (
  <>
    <DescriptionList
      items={[
        ['Current version', release.currentVersion],
        [
          'Newest version',
          <span key="latest" className={styles['actions']}>
            {release.latestVersion}{' '}
            {release.updateAvailable ? (
              <Badge variant="busy" icon={ArrowUp}>
                Update available
              </Badge>
            ) : (
              <Badge variant="good" icon={CircleCheck}>
                Up to date
              </Badge>
            )}
          </span>,
        ],
        ['Checked', release.checkedAt === undefined ? 'Not yet' : <Time key="checked" at={release.checkedAt} />],
        ...(release.releaseNotesUrl === undefined
          ? []
          : ([['Release notes', <Notes key="notes" url={release.releaseNotesUrl} />]] as const)),
      ]}
    />
    {release.refused !== undefined && release.refused.length > 0 && (
      <section aria-label="Incompatible releases">
        <h3>Newer releases that cannot be applied</h3>
        <ul className={styles['refused']}>
          {release.refused.map(({ version, reason }) => (
            <li key={version}>
              <strong>{version}</strong> <span className={styles['quiet']}>{reason}</span>
            </li>
          ))}
        </ul>
      </section>
    )}
  </>
)

// The author of the release chose the URL, so only https URLs become links.
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

const secureLink = (url: string): string | undefined =>
  URL.canParse(url) && new URL(url).protocol === 'https:' ? new URL(url).href : undefined
