import { Link } from '@tanstack/react-router'
import styles from './shell.module.css'

export const Brand = ({ name }: { name: string }) => (
  <Link to="/dashboard" className={styles['brand']}>
    <img src="/icon.svg" alt="" width={24} height={24} />
    <span>{name}</span>
  </Link>
)
