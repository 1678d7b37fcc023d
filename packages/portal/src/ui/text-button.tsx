import type { ReactNode } from 'react'
import styles from './text-button.module.css'

/** A button that looks like a link, mostly to open a dialog. */
export const TextButton = ({ onClick, children }: { onClick: () => void; children: ReactNode }) => (
  <button type="button" className={styles['text']} onClick={onClick}>
    {children}
  </button>
)
