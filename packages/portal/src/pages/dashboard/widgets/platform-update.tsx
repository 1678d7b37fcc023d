import { Link } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { Badge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import styles from './widgets.module.css'

export const PlatformUpdate = () => (
  <Loaded query={useSummary()} what="the release">
    {({ update }) => (
      <div className={styles['stack']}>
        {update?.updateAvailable ? (
          <Badge tone="busy">Version {update.latestVersion} is available</Badge>
        ) : (
          <Badge tone="good">Up to date</Badge>
        )}
        <p>
          Version {update?.currentVersion} is active.{' '}
          {update?.checkedAt === undefined ? (
            'Not checked for updates yet.'
          ) : (
            <>
              Checked <Time at={update.checkedAt} />.
            </>
          )}
        </p>
        <Link to="/settings/updates">Go to updates</Link>
      </div>
    )}
  </Loaded>
)
