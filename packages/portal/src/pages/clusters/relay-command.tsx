import { CopyField } from '../../ui/copy.tsx'
import styles from './clusters.module.css'

/** The relay command, with a secret that is shown once. */
export const RelayCommand = ({ command }: { command: string }) => (
  <>
    <p>
      Run this on the machine that runs the scripts. It needs Node.js 20 or later and outbound access to the platform.
    </p>
    <CopyField text={command} label="Relay command" />
    <p className={styles['quiet']}>
      The token works once within 24 hours and is not shown again. You can issue a new one on the cluster’s page.
    </p>
  </>
)
