import { RotateCw } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Page } from '../../ui/page.tsx'
import { OperationProgress } from '../operation/operation-progress.tsx'
import type { Operation } from '../operation/use-operation.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { HistoryCard } from './history-card.tsx'
import { ReleaseCard } from './release-card.tsx'
import { useHistory } from './use-updates.ts'

export const UpdatesPage = () => (
  <RequirePermission permission="platform:admin" title="Updates">
    <Page title="Updates" lead="Update the platform or roll back to the previous version.">
      <Updates />
    </Page>
  </RequirePermission>
)

function Updates() {
  const { running } = useHistory()
  // Keeps showing an update after its end.
  const [followed, setFollowed] = useState<string>()
  if (running !== undefined && running.id !== followed) setFollowed(running.id)
  return (
    <>
      {followed !== undefined && (
        <Card title="Progress">
          <OperationProgress key={followed} jobId={followed} title={titleOf} after={(job) => <After {...job} />} />
        </Card>
      )}
      <ReleaseCard isBusy={running !== undefined} onBegun={setFollowed} />
      <HistoryCard />
    </>
  )
}

function titleOf({ type, payload: { targetVersion, previousVersion } }: Operation): string {
  const what = type === 'PlatformRollback' ? 'Rollback to' : 'Update to'
  return `${what} ${String(targetVersion)} from ${String(previousVersion)}`
}

/** The portal is part of the release. */
const After = ({ status }: Operation) =>
  status === 'Completed' && (
    <p>
      This tab still shows the previous version of the portal.{' '}
      <Button icon={RotateCw} onClick={() => location.reload()}>
        Reload the portal
      </Button>
    </p>
  )
