/** Log interface of migrations; implemented by the log of the service. */
export interface MigrationLog {
  info(fields: { event: string; [name: string]: unknown }, message: string): void;
  warn(fields: { event: string; [name: string]: unknown }, message: string): void;
  error(fields: { event: string; [name: string]: unknown }, message: string): void;
}
