import type { ReactNode } from 'react'
import { classes } from '../ui/class-names.ts'
import { useTitle } from '../ui/page.tsx'
import styles from './standalone.module.css'

interface StandaloneProps {
  /** The page's one heading of the first level, and the title of the tab. */
  title: string
  /** The name of the platform. */
  brand: string
  isWide?: boolean
  children: ReactNode
}

/** A page before the sign-in: nothing stands around it, as there is nowhere else to go. */
export function Standalone({ title, brand, isWide = false, children }: StandaloneProps) {
  useTitle(title)
  return (
    <main className={styles['frame']}>
      <p className={styles['brand']}>
        <img src="/icon.svg" alt="" width={28} height={28} />
        <span>{brand}</span>
      </p>
      <div className={classes(styles['card'], isWide && styles['wide'])}>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}
