import { CopyField } from '../../ui/copy.tsx'
import styles from './clusters.module.css'

/** What starts a relay. It holds a secret that is not shown again. */
export const RelayCommand = ({ command }: { command: string }) => (
  <>
    <p>
      Run this on the machine that shall run scripts. It needs Node.js 20 or later, and reaches the platform by itself:
      nothing has to be opened towards it.
    </p>
    <CopyField text={command} label="Relay command" />
    <p className={styles['quiet']}>
      The token in it works once, for 24 hours, and is not shown again. The page of the cluster issues a new one.
    </p>
  </>
)
