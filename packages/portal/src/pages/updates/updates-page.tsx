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

/** Releases of the platform itself. */
export const UpdatesPage = () => (
  <RequirePermission permission="platform:admin" title="Updates">
    <Page title="Updates" lead="Releases of the platform itself: what runs, what there is, and the way back.">
      <Updates />
    </Page>
  </RequirePermission>
)

function Updates() {
  const { running } = useHistory()
  // What was begun or seen to run here stays in sight when it is over.
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
  const what = type === 'PlatformRollback' ? 'Back to' : 'Update to'
  return `${what} ${String(targetVersion)} from ${String(previousVersion)}`
}

/** The portal is part of the release. */
const After = ({ status }: Operation) =>
  status === 'Completed' && (
    <p>
      This tab still shows the portal of the version before.{' '}
      <Button icon={RotateCw} onClick={() => location.reload()}>
        Load the portal anew
      </Button>
    </p>
  )
