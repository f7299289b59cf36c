// Browsers start no worker for a page that was opened from disk. There, run the script of the
// search in a hidden frame that sends and receives messages as a worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write(
        "<script>postMessage = (data) => parent.postMessage(data, '*');" +
        "importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {" +
        "const tag = document.createElement('script'); tag.src = url; tag.onload = done;" +
        "document.body.appendChild(tag); })));</" + "script><body>" +
        `<script src="${script}"></` + "script></body>"
      );
      inside.document.close();
      this.ready = new Promise((resolve) => { inside.onload = resolve; });  // open() removes it
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(
        new MessageEvent("message", { data: structuredClone(data) })
      ));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
