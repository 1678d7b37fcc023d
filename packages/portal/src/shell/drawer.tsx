import { Dialog } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { IconButton } from '../ui/button.tsx'
import { Navigation } from './navigation.tsx'
import styles from './shell.module.css'

export const Drawer = ({ onClose }: { onClose: () => void }) => (
  <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
    <Dialog.Portal>
      <Dialog.Backdrop className={styles['veil']} />
      <Dialog.Popup className={styles['drawer']}>
        <Dialog.Title className="visually-hidden">Navigation</Dialog.Title>
        <Dialog.Close render={<IconButton label="Close navigation" icon={X} />} />
        <Navigation onNavigate={onClose} />
      </Dialog.Popup>
    </Dialog.Portal>
  </Dialog.Root>
)
