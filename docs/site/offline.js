// The search of a site that was opened from disk: browsers start no worker there, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((done) => {
        document.body.append(this.frame);
        const inside = this.frame.contentWindow;
        inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = () => done(inside);
        script.onerror = (error) => this.onerror?.(error);
        inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
